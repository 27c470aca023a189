package org.loam.jvm.word.agent;

import org.objectweb.asm.Label;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;
import org.objectweb.asm.commons.GeneratorAdapter;
import org.objectweb.asm.commons.Method;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.MethodNode;

/**
 * The body of an @Atomic method:
 *
 * <pre>
 *   context = Context.current();
 *   if (context.isActive()) return twin(arguments, context);
 *   for (;;) {
 *     context.begin();
 *     try {
 *       result = twin(arguments, context);
 *     } catch (Abort met) { context.abort(); continue;
 *     } catch (Throwable thrown) { if (context.commit()) throw thrown; continue; }
 *     if (context.commit()) return result;
 *   }
 * </pre>
 */
final class RetryLoop {
  private static final Type CONTEXT = Type.getObjectType(Names.CONTEXT);
  private static final Method CURRENT = new Method("current", "()L" + Names.CONTEXT + ";");
  private static final Method IS_ACTIVE = new Method("isActive", "()Z");
  private static final Method BEGIN = new Method("begin", "()V");
  private static final Method ABORT = new Method("abort", "()V");
  private static final Method COMMIT = new Method("commit", "()Z");

  private RetryLoop() {}

  static void replace(ClassNode type, MethodNode method) {
    MethodNode loop =
        new MethodNode(
            method.access, method.name, method.desc, method.signature, exceptions(method));
    loop.visibleAnnotations = method.visibleAnnotations;
    write(type, method, new GeneratorAdapter(loop, method.access, method.name, method.desc));
    type.methods.set(type.methods.indexOf(method), loop);
  }

  private static String[] exceptions(MethodNode method) {
    return method.exceptions.toArray(new String[0]);
  }

  private static void write(ClassNode type, MethodNode method, GeneratorAdapter code) {
    Type result = Type.getReturnType(method.desc);
    code.visitCode();
    int context = code.newLocal(CONTEXT);
    int kept = result == Type.VOID_TYPE ? -1 : code.newLocal(result);
    code.invokeStatic(CONTEXT, CURRENT);
    code.storeLocal(context);
    Label again = code.newLabel();
    code.loadLocal(context);
    code.invokeVirtual(CONTEXT, IS_ACTIVE);
    code.ifZCmp(GeneratorAdapter.EQ, again);
    twin(type, method, code, context);
    code.returnValue();

    code.mark(again);
    code.loadLocal(context);
    code.invokeVirtual(CONTEXT, BEGIN);
    Label start = code.mark();
    twin(type, method, code, context);
    if (kept >= 0) {
      code.storeLocal(kept);
    }
    Label end = code.mark();
    code.loadLocal(context);
    code.invokeVirtual(CONTEXT, COMMIT);
    code.ifZCmp(GeneratorAdapter.EQ, again);
    if (kept >= 0) {
      code.loadLocal(kept);
    }
    code.returnValue();

    code.catchException(start, end, Type.getObjectType(Names.ABORT));
    code.pop();
    code.loadLocal(context);
    code.invokeVirtual(CONTEXT, ABORT);
    code.goTo(again);

    code.catchException(start, end, null);
    int thrown = code.newLocal(Type.getObjectType("java/lang/Throwable"));
    code.storeLocal(thrown);
    code.loadLocal(context);
    code.invokeVirtual(CONTEXT, COMMIT);
    code.ifZCmp(GeneratorAdapter.EQ, again);
    code.loadLocal(thrown);
    code.throwException();
    code.endMethod();
  }

  private static void twin(ClassNode type, MethodNode method, GeneratorAdapter code, int context) {
    boolean isStatic = (method.access & Opcodes.ACC_STATIC) != 0;
    if (!isStatic) {
      code.loadThis();
    }
    code.loadArgs();
    code.loadLocal(context);
    code.visitMethodInsn(
        isStatic ? Opcodes.INVOKESTATIC : Opcodes.INVOKEVIRTUAL,
        type.name,
        method.name + Names.IN_TRANSACTION,
        Names.withContext(method.desc),
        false);
  }
}
