package org.loam.jvm.word.agent;

import org.objectweb.asm.Type;

/** What the agent calls what it adds, and what it calls itself. */
final class Names {
  static final String IN_TRANSACTION = "$tx";
  static final String OFFSET = "$offset";
  static final String STATICS = "$statics";
  static final String CONTEXT = "org/loam/jvm/word/Context";
  static final String ACCESS = "org/loam/jvm/word/Access";
  static final String MEMORY = "org/loam/jvm/word/Memory";
  static final String ABORT = "org/loam/jvm/word/Abort";
  static final String ATOMIC = "Lorg/loam/jvm/word/Atomic;";
  static final String UNSHARED = "Lorg/loam/jvm/word/Unshared;";

  private Names() {}

  /** The descriptor of a method with a transaction as its last argument. */
  static String withContext(String descriptor) {
    int close = descriptor.lastIndexOf(')');
    return descriptor.substring(0, close) + "L" + CONTEXT + ";" + descriptor.substring(close);
  }

  static boolean isReference(String descriptor) {
    return descriptor.charAt(0) == 'L' || descriptor.charAt(0) == '[';
  }

  static boolean isReference(Type type) {
    return type.getSort() == Type.OBJECT || type.getSort() == Type.ARRAY;
  }
}
