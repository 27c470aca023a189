package org.loam.jvm.word.agent;

import static org.objectweb.asm.Opcodes.*;

import org.loam.jvm.word.Memory;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Type;
import org.objectweb.asm.commons.AnalyzerAdapter;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.MethodNode;

/**
 * A method's twin: the same code, with its accesses made through the transaction that is its last
 * argument.
 */
final class Twin extends MethodVisitor {
  private static final String CONTEXT_LAST = "L" + Names.CONTEXT + ";)";

  private final Instrumented instrumented;
  private final int context;
  private AnalyzerAdapter types;

  private Twin(Instrumented instrumented, MethodVisitor twin, int context) {
    super(ASM9, twin);
    this.instrumented = instrumented;
    this.context = context;
  }

  static MethodNode of(Instrumented instrumented, ClassNode type, MethodNode method) {
    MethodNode twin =
        new MethodNode(
            method.access | ACC_SYNTHETIC,
            method.name + Names.IN_TRANSACTION,
            Names.withContext(method.desc),
            null,
            method.exceptions.toArray(new String[0]));
    // Sizes are arguments * 4 + result, and count "this".
    int arguments =
        (Type.getArgumentsAndReturnSizes(method.desc) >> 2)
            - ((method.access & ACC_STATIC) != 0 ? 1 : 0);
    Twin writer = new Twin(instrumented, twin, arguments);
    writer.types =
        new AnalyzerAdapter(ASM9, type.name, method.access, method.name, method.desc, writer) {};
    method.accept(writer.types);
    return twin;
  }

  @Override
  public void visitFrame(int kind, int locals, Object[] local, int stacked, Object[] stack) {
    // Frames are computed anew.
  }

  @Override
  public void visitVarInsn(int opcode, int local) {
    super.visitVarInsn(opcode, shifted(local));
  }

  @Override
  public void visitIincInsn(int local, int increment) {
    super.visitIincInsn(shifted(local), increment);
  }

  @Override
  public void visitLocalVariable(
      String name, String descriptor, String signature, Label start, Label end, int index) {
    super.visitLocalVariable(name, descriptor, signature, start, end, shifted(index));
  }

  @Override
  public void visitMaxs(int stack, int locals) {
    super.visitMaxs(stack + 8, locals + 1);
  }

  @Override
  public void visitFieldInsn(int opcode, String owner, String name, String descriptor) {
    String declares = instrumented.hierarchy().fieldOwner(owner, name);
    boolean plain =
        declares == null
            || !instrumented.covers(declares)
            || (instrumented.hierarchy().of(declares).fields.get(name) & ACC_FINAL) != 0;
    if (plain) {
      super.visitFieldInsn(opcode, owner, name, descriptor);
      return;
    }
    boolean isStatic = opcode == GETSTATIC || opcode == PUTSTATIC;
    boolean isRead = opcode == GETFIELD || opcode == GETSTATIC;
    boolean isReference = Names.isReference(descriptor);
    if (!isRead && !isReference) {
      toBits(descriptor.charAt(0));
    }
    if (isStatic) {
      super.visitFieldInsn(GETSTATIC, declares, Names.STATICS, "L" + Hierarchy.OBJECT + ";");
    }
    super.visitFieldInsn(GETSTATIC, declares, name + Names.OFFSET, "J");
    if (!isReference) {
      number(kind(descriptor.charAt(0)));
    }
    String on = "Ljava/lang/Object;";
    if (isRead) {
      call(
          isReference ? "readReference" : "read",
          isReference ? "(" + on + "J" + CONTEXT_LAST + on : "(" + on + "JI" + CONTEXT_LAST + "J");
      fromBits(descriptor);
    } else {
      String value = isReference ? on : "J";
      String order = isStatic ? value + on : on + value;
      call(
          "write" + (isStatic ? "Static" : "") + (isReference ? "Reference" : ""),
          "(" + order + "J" + (isReference ? "" : "I") + CONTEXT_LAST + "V");
    }
  }

  @Override
  public void visitInsn(int opcode) {
    switch (opcode) {
      case AALOAD -> {
        Object array = types.stack.get(types.stack.size() - 2);
        call("loadReference", "(Ljava/lang/Object;I" + CONTEXT_LAST + "Ljava/lang/Object;");
        if (array instanceof String name && name.charAt(0) == '[') {
          fromBits(name.substring(1));
        }
      }
      case AASTORE ->
          call("storeReference", "(Ljava/lang/Object;ILjava/lang/Object;" + CONTEXT_LAST + "V");
      case IALOAD -> load("I");
      case LALOAD -> load("J");
      case FALOAD -> load("F");
      case DALOAD -> load("D");
      case BALOAD -> load("B");
      case CALOAD -> load("C");
      case SALOAD -> load("S");
      case IASTORE -> store('I');
      case LASTORE -> store('J');
      case FASTORE -> store('F');
      case DASTORE -> store('D');
      case BASTORE -> store('B');
      case CASTORE -> store('C');
      case SASTORE -> store('S');
      default -> super.visitInsn(opcode);
    }
  }

  @Override
  public void visitMethodInsn(
      int opcode, String owner, String name, String descriptor, boolean isInterface) {
    String declares =
        name.charAt(0) == '<' || owner.charAt(0) == '['
            ? null
            : instrumented.hierarchy().methodOwner(owner, name + descriptor);
    if (declares == null || !instrumented.covers(declares)) {
      super.visitMethodInsn(opcode, owner, name, descriptor, isInterface);
      return;
    }
    super.visitVarInsn(ALOAD, context);
    super.visitMethodInsn(
        opcode, owner, name + Names.IN_TRANSACTION, Names.withContext(descriptor), isInterface);
  }

  private int shifted(int local) {
    return local < context ? local : local + 1;
  }

  private void load(String element) {
    number(kind(element.charAt(0)));
    call("load", "(Ljava/lang/Object;II" + CONTEXT_LAST + "J");
    fromBits(element);
  }

  private void store(char element) {
    toBits(element);
    number(kind(element));
    call("store", "(Ljava/lang/Object;IJI" + CONTEXT_LAST + "V");
  }

  private void call(String name, String descriptor) {
    super.visitVarInsn(ALOAD, context);
    super.visitMethodInsn(INVOKESTATIC, Names.ACCESS, name, descriptor, false);
  }

  private void number(int value) {
    super.visitIntInsn(BIPUSH, value);
  }

  private static int kind(char descriptor) {
    return switch (descriptor) {
      case 'Z' -> Memory.BOOLEAN;
      case 'B' -> Memory.BYTE;
      case 'S' -> Memory.SHORT;
      case 'C' -> Memory.CHAR;
      case 'I', 'F' -> Memory.INT;
      default -> Memory.LONG;
    };
  }

  /** A value of the stack as 64 bits. */
  private void toBits(char descriptor) {
    switch (descriptor) {
      case 'J' -> {}
      case 'D' ->
          super.visitMethodInsn(
              INVOKESTATIC, "java/lang/Double", "doubleToRawLongBits", "(D)J", false);
      case 'F' -> {
        super.visitMethodInsn(INVOKESTATIC, "java/lang/Float", "floatToRawIntBits", "(F)I", false);
        super.visitInsn(I2L);
      }
      default -> super.visitInsn(I2L);
    }
  }

  /** 64 bits of the stack, or an object, as a value of a type. */
  private void fromBits(String descriptor) {
    switch (descriptor.charAt(0)) {
      case 'J' -> {}
      case 'D' ->
          super.visitMethodInsn(
              INVOKESTATIC, "java/lang/Double", "longBitsToDouble", "(J)D", false);
      case 'F' -> {
        super.visitInsn(L2I);
        super.visitMethodInsn(INVOKESTATIC, "java/lang/Float", "intBitsToFloat", "(I)F", false);
      }
      case 'L', '[' -> super.visitTypeInsn(CHECKCAST, Type.getType(descriptor).getInternalName());
      default -> super.visitInsn(L2I);
    }
  }
}
