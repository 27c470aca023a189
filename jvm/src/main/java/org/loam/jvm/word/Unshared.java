package org.loam.jvm.word;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * A class whose objects belong to one thread each: the agent leaves it as it is. An attempt that is
 * run again finds what the one before it left there.
 */
@Retention(RetentionPolicy.CLASS)
@Target(ElementType.TYPE)
public @interface Unshared {}
