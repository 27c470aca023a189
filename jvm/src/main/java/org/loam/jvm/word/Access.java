package org.loam.jvm.word;

import java.lang.reflect.Array;
import java.util.Objects;

/**
 * What instrumented code calls in place of its own accesses; the transaction is the last argument
 * of each.
 */
public final class Access {
  private Access() {}

  public static long read(Object object, long offset, int kind, Context context) {
    return context.read(Objects.requireNonNull(object), offset, kind);
  }

  public static Object readReference(Object object, long offset, Context context) {
    return context.read(Objects.requireNonNull(object), offset);
  }

  public static void write(Object object, long bits, long offset, int kind, Context context) {
    context.write(Objects.requireNonNull(object), offset, kind, bits, null);
  }

  public static void writeReference(Object object, Object value, long offset, Context context) {
    context.write(Objects.requireNonNull(object), offset, Memory.REFERENCE, 0, value);
  }

  public static void writeStatic(
      long bits, Object statics, long offset, int kind, Context context) {
    context.write(statics, offset, kind, bits, null);
  }

  public static void writeStaticReference(
      Object value, Object statics, long offset, Context context) {
    context.write(statics, offset, Memory.REFERENCE, 0, value);
  }

  public static long load(Object array, int index, int kind, Context context) {
    Objects.checkIndex(index, Array.getLength(array));
    return context.read(array, Memory.element(index, kindOf(array, kind)), kindOf(array, kind));
  }

  public static Object loadReference(Object array, int index, Context context) {
    Objects.checkIndex(index, Array.getLength(array));
    return context.read(array, Memory.element(index, Memory.REFERENCE));
  }

  public static void store(Object array, int index, long bits, int kind, Context context) {
    Objects.checkIndex(index, Array.getLength(array));
    int real = kindOf(array, kind);
    context.write(array, Memory.element(index, real), real, bits, null);
  }

  public static void storeReference(Object array, int index, Object value, Context context) {
    Objects.checkIndex(index, Array.getLength(array));
    if (value != null && !array.getClass().getComponentType().isInstance(value)) {
      throw new ArrayStoreException(value.getClass().getName());
    }
    context.write(array, Memory.element(index, Memory.REFERENCE), Memory.REFERENCE, 0, value);
  }

  /** One instruction loads bytes and booleans. */
  private static int kindOf(Object array, int kind) {
    return kind == Memory.BYTE && array instanceof boolean[] ? Memory.BOOLEAN : kind;
  }
}
