package org.loam.jvm.word.agent;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.objectweb.asm.AnnotationVisitor;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.FieldVisitor;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/** What classes are called and hold, read from their files: nothing is loaded for it. */
final class Hierarchy {
  static final String OBJECT = "java/lang/Object";
  private final Map<String, Shape> known = new ConcurrentHashMap<>();

  /** Super class, interfaces, fields with their access, and methods of one class. */
  static final class Shape extends ClassVisitor {
    String above;
    boolean isInterface;
    boolean isUnshared;
    final List<String> interfaces = new ArrayList<>();
    final Map<String, Integer> fields = new HashMap<>();
    final Set<String> methods = new HashSet<>();

    Shape() {
      super(Opcodes.ASM9);
    }

    @Override
    public void visit(
        int version, int access, String name, String signature, String parent, String[] others) {
      above = parent;
      isInterface = (access & Opcodes.ACC_INTERFACE) != 0;
      interfaces.addAll(List.of(others));
    }

    @Override
    public AnnotationVisitor visitAnnotation(String descriptor, boolean visible) {
      isUnshared |= descriptor.equals(Names.UNSHARED);
      return null;
    }

    @Override
    public FieldVisitor visitField(
        int access, String name, String descriptor, String signature, Object value) {
      fields.put(name, access);
      return null;
    }

    @Override
    public MethodVisitor visitMethod(
        int access, String name, String descriptor, String signature, String[] exceptions) {
      methods.add(name + descriptor);
      return null;
    }
  }

  Shape of(String name) {
    return known.computeIfAbsent(name, Hierarchy::read);
  }

  private static Shape read(String name) {
    Shape shape = new Shape();
    try (InputStream code = ClassLoader.getSystemResourceAsStream(name + ".class")) {
      if (code == null) {
        shape.above = OBJECT;
        return shape;
      }
      new ClassReader(code).accept(shape, ClassReader.SKIP_CODE | ClassReader.SKIP_DEBUG);
      return shape;
    } catch (IOException problem) {
      throw new UncheckedIOException(problem);
    }
  }

  /** The class that declares a field, from a class upwards; null if none is found. */
  String fieldOwner(String from, String field) {
    for (String at = from; at != null; at = of(at).above) {
      if (of(at).fields.containsKey(field)) {
        return at;
      }
    }
    return null;
  }

  /**
   * The first class or interface that declares a method, from a class upwards; null if none is
   * found.
   */
  String methodOwner(String from, String method) {
    for (String at = from; at != null; at = of(at).above) {
      if (of(at).methods.contains(method)) {
        return at;
      }
    }
    for (String at = from; at != null; at = of(at).above) {
      for (String one : of(at).interfaces) {
        String found = methodOwner(one, method);
        if (found != null) {
          return found;
        }
      }
    }
    return null;
  }

  /** What two types have in common, for stack maps. */
  String common(String one, String other) {
    Set<String> ancestors = new HashSet<>();
    for (String at = one; at != null; at = of(at).above) {
      ancestors.add(at);
    }
    for (String at = other; at != null; at = of(at).above) {
      if (ancestors.contains(at) && !of(at).isInterface) {
        return at;
      }
    }
    return OBJECT;
  }
}
