package org.loam.jvm.word;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.VarHandle;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;

/**
 * Words of objects by their offsets. Java 17 has no other interface for that than sun.misc.Unsafe,
 * whose name alone is a warning of the compiler; constant method handles of it cost the same.
 */
public final class Memory {
  /** What a word holds; sizes and offsets of arrays follow from it. */
  public static final int BOOLEAN = 0;

  public static final int BYTE = 1;
  public static final int SHORT = 2;
  public static final int CHAR = 3;
  public static final int INT = 4;
  public static final int LONG = 5;
  public static final int REFERENCE = 6;

  private static final Object UNSAFE = unsafe();
  private static final MethodHandle GET_BOOLEAN = get("getBoolean", boolean.class);
  private static final MethodHandle PUT_BOOLEAN = put("putBoolean", boolean.class);
  private static final MethodHandle GET_BYTE = get("getByte", byte.class);
  private static final MethodHandle PUT_BYTE = put("putByte", byte.class);
  private static final MethodHandle GET_SHORT = get("getShort", short.class);
  private static final MethodHandle PUT_SHORT = put("putShort", short.class);
  private static final MethodHandle GET_CHAR = get("getChar", char.class);
  private static final MethodHandle PUT_CHAR = put("putChar", char.class);
  private static final MethodHandle GET_INT = get("getInt", int.class);
  private static final MethodHandle PUT_INT = put("putInt", int.class);
  private static final MethodHandle GET_LONG = get("getLong", long.class);
  private static final MethodHandle PUT_LONG = put("putLong", long.class);
  private static final MethodHandle GET_OBJECT = get("getObject", Object.class);
  private static final MethodHandle PUT_OBJECT = put("putObject", Object.class);
  private static final Class<?>[] ARRAYS = {
    boolean[].class,
    byte[].class,
    short[].class,
    char[].class,
    int[].class,
    long[].class,
    Object[].class
  };
  private static final long[] BASES = new long[ARRAYS.length];
  private static final long[] SCALES = new long[ARRAYS.length];

  static {
    for (int kind = 0; kind < ARRAYS.length; ++kind) {
      BASES[kind] = ((Integer) asked("arrayBaseOffset", Class.class, ARRAYS[kind])).longValue();
      SCALES[kind] = ((Integer) asked("arrayIndexScale", Class.class, ARRAYS[kind])).longValue();
    }
  }

  private Memory() {}

  private static Object unsafe() {
    try {
      Field field = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
      field.setAccessible(true);
      return field.get(null);
    } catch (ReflectiveOperationException problem) {
      throw new ExceptionInInitializerError(problem);
    }
  }

  private static MethodHandle get(String name, Class<?> type) {
    return found(name, MethodType.methodType(type, Object.class, long.class));
  }

  private static MethodHandle put(String name, Class<?> type) {
    return found(name, MethodType.methodType(void.class, Object.class, long.class, type));
  }

  private static MethodHandle found(String name, MethodType type) {
    try {
      return MethodHandles.lookup().bind(UNSAFE, name, type);
    } catch (ReflectiveOperationException problem) {
      throw new ExceptionInInitializerError(problem);
    }
  }

  private static Object asked(String name, Class<?> type, Object argument) {
    try {
      return UNSAFE.getClass().getMethod(name, type).invoke(UNSAFE, argument);
    } catch (ReflectiveOperationException problem) {
      throw new IllegalStateException(problem);
    }
  }

  private static Field declared(Class<?> owner, String field) {
    try {
      return owner.getDeclaredField(field);
    } catch (NoSuchFieldException problem) {
      throw new IllegalStateException(problem);
    }
  }

  /** The offset of a field; the agent keeps it in a field beside it. */
  public static long offset(Class<?> owner, String field) {
    Field found = declared(owner, field);
    String name =
        Modifier.isStatic(found.getModifiers()) ? "staticFieldOffset" : "objectFieldOffset";
    return (Long) asked(name, Field.class, found);
  }

  /** Where the static fields of a class lie. */
  public static Object statics(Class<?> owner, String field) {
    return asked("staticFieldBase", Field.class, declared(owner, field));
  }

  static long element(int index, int kind) {
    return BASES[kind] + index * SCALES[kind];
  }

  static long bits(Object object, long offset, int kind) {
    try {
      return switch (kind) {
        case BOOLEAN -> (boolean) GET_BOOLEAN.invokeExact(object, offset) ? 1 : 0;
        case BYTE -> (byte) GET_BYTE.invokeExact(object, offset);
        case SHORT -> (short) GET_SHORT.invokeExact(object, offset);
        case CHAR -> (char) GET_CHAR.invokeExact(object, offset);
        case INT -> (int) GET_INT.invokeExact(object, offset);
        default -> (long) GET_LONG.invokeExact(object, offset);
      };
    } catch (Throwable problem) {
      throw new IllegalStateException(problem);
    }
  }

  static void bits(Object object, long offset, int kind, long bits) {
    try {
      switch (kind) {
        case BOOLEAN -> PUT_BOOLEAN.invokeExact(object, offset, bits != 0);
        case BYTE -> PUT_BYTE.invokeExact(object, offset, (byte) bits);
        case SHORT -> PUT_SHORT.invokeExact(object, offset, (short) bits);
        case CHAR -> PUT_CHAR.invokeExact(object, offset, (char) bits);
        case INT -> PUT_INT.invokeExact(object, offset, (int) bits);
        default -> PUT_LONG.invokeExact(object, offset, bits);
      }
    } catch (Throwable problem) {
      throw new IllegalStateException(problem);
    }
  }

  static Object reference(Object object, long offset) {
    try {
      return (Object) GET_OBJECT.invokeExact(object, offset);
    } catch (Throwable problem) {
      throw new IllegalStateException(problem);
    }
  }

  static void reference(Object object, long offset, Object value) {
    try {
      PUT_OBJECT.invokeExact(object, offset, value);
    } catch (Throwable problem) {
      throw new IllegalStateException(problem);
    }
  }

  /** Loads before it stay before loads after it. */
  static void loadFence() {
    VarHandle.loadLoadFence();
  }
}
