package org.loam.jvm.word.agent;

import java.util.ArrayList;
import java.util.List;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.AnnotationNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.FieldInsnNode;
import org.objectweb.asm.tree.FieldNode;
import org.objectweb.asm.tree.InsnList;
import org.objectweb.asm.tree.InsnNode;
import org.objectweb.asm.tree.LdcInsnNode;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;

/**
 * Classes with what transactions need: of every method a twin that takes the transaction as its
 * last argument and makes its accesses through it; of every field that may change its offset; and
 * of an @Atomic method a loop around its twin.
 *
 * <p>Constructors and static initialisers stay as they are: what they write belongs to nobody else
 * yet.
 */
class Instrumented {
  private final List<String> prefixes;
  private final Hierarchy hierarchy = new Hierarchy();

  Instrumented(List<String> prefixes) {
    this.prefixes = prefixes;
  }

  boolean covers(String name) {
    return name != null
        && !name.startsWith("org/loam/jvm/word/")
        && prefixes.stream().anyMatch(name::startsWith)
        && !hierarchy.of(name).isUnshared;
  }

  Hierarchy hierarchy() {
    return hierarchy;
  }

  byte[] instrument(byte[] code) {
    ClassNode type = new ClassNode();
    new ClassReader(code).accept(type, ClassReader.EXPAND_FRAMES);
    boolean isInterface = (type.access & Opcodes.ACC_INTERFACE) != 0;
    List<MethodNode> originals = new ArrayList<>(type.methods);
    for (MethodNode method : originals) {
      if (method.name.charAt(0) == '<' || (method.access & Opcodes.ACC_NATIVE) != 0) {
        continue;
      }
      type.methods.add(Twin.of(this, type, method));
      if (isAtomic(method)) {
        RetryLoop.replace(type, method);
      }
    }
    if (!isInterface) {
      addOffsets(type);
    }
    ClassWriter writer =
        new ClassWriter(ClassWriter.COMPUTE_FRAMES) {
          @Override
          protected String getCommonSuperClass(String one, String other) {
            return hierarchy.common(one, other);
          }
        };
    type.accept(writer);
    return writer.toByteArray();
  }

  private static boolean isAtomic(MethodNode method) {
    List<AnnotationNode> annotations = method.visibleAnnotations;
    return annotations != null
        && annotations.stream().anyMatch(one -> one.desc.equals(Names.ATOMIC));
  }

  private static void addOffsets(ClassNode type) {
    InsnList start = new InsnList();
    List<FieldNode> added = new ArrayList<>();
    String statics = null;
    for (FieldNode field : type.fields) {
      if ((field.access & Opcodes.ACC_FINAL) != 0) {
        continue;
      }
      if ((field.access & Opcodes.ACC_STATIC) != 0) {
        statics = field.name;
      }
      add(type, added, start, field.name + Names.OFFSET, "J", "offset", field.name);
    }
    if (statics != null) {
      add(type, added, start, Names.STATICS, "L" + Hierarchy.OBJECT + ";", "statics", statics);
    }
    if (added.isEmpty()) {
      return;
    }
    type.fields.addAll(added);
    MethodNode initialiser =
        type.methods.stream().filter(one -> one.name.equals("<clinit>")).findFirst().orElse(null);
    if (initialiser == null) {
      initialiser = new MethodNode(Opcodes.ACC_STATIC, "<clinit>", "()V", null, null);
      initialiser.instructions.add(new InsnNode(Opcodes.RETURN));
      type.methods.add(initialiser);
    }
    AbstractInsnNode first = initialiser.instructions.getFirst();
    initialiser.instructions.insertBefore(first, start);
  }

  private static void add(
      ClassNode type,
      List<FieldNode> added,
      InsnList start,
      String name,
      String descriptor,
      String method,
      String of) {
    int access =
        Opcodes.ACC_PUBLIC | Opcodes.ACC_STATIC | Opcodes.ACC_SYNTHETIC | Opcodes.ACC_FINAL;
    added.add(new FieldNode(access, name, descriptor, null, null));
    start.add(new LdcInsnNode(org.objectweb.asm.Type.getObjectType(type.name)));
    start.add(new LdcInsnNode(of));
    start.add(
        new MethodInsnNode(
            Opcodes.INVOKESTATIC,
            Names.MEMORY,
            method,
            "(Ljava/lang/Class;Ljava/lang/String;)" + descriptor,
            false));
    start.add(new FieldInsnNode(Opcodes.PUTSTATIC, type.name, name, descriptor));
  }
}
