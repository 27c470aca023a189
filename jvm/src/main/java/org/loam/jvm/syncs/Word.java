package org.loam.jvm.syncs;

import java.util.List;
import org.loam.jvm.harness.BadInput;
import org.loam.jvm.harness.Options;
import org.loam.jvm.harness.Parameter;
import org.loam.jvm.tm.Body;
import org.loam.jvm.tm.Library;
import org.loam.jvm.tm.Tx;
import org.loam.jvm.tm.Worker;
import org.loam.jvm.word.Atomic;
import org.loam.jvm.word.Context;
import org.loam.jvm.word.agent.Agent;

/** Plain fields and arrays, made transactional by an agent: org.loam.jvm.word. */
public final class Word extends Library {
  @Override
  public String summary() {
    return "plain fields on the JVM, instrumented by an agent in the manner of Deuce: a lock per word, writes at commit";
  }

  @Override
  public String guarantees() {
    return "opacity, for the classes that the agent instruments; constructors and lambdas are left as they are";
  }

  @Override
  public String paper() {
    return "Korland, Shavit, Felber, Deuce, MultiProg 2010; Dice, Shalev, Shavit, TL2, DISC 2006";
  }

  @Override
  public List<Parameter> parameters() {
    return List.of(
        Parameter.choice(
            "engine",
            List.of("tl2", "lsa"),
            "lsa: what is newer than the snapshot moves it, where TL2 aborts"));
  }

  @Override
  public void configure(Options options) {
    if (!Agent.hasInstrumented(getClass())) {
      throw new BadInput(
          name(), "", "the agent is not loaded, and updates would be lost", "add -javaagent");
    }
    Context.extendSnapshots(options.choice("engine").equals("lsa"));
  }

  @Override
  public double atomically(Worker worker, Body body) {
    Context context = Context.current();
    long before = context.attempts();
    double result = transaction(body);
    for (long done = before; done < context.attempts(); ++done) {
      worker.attempt();
    }
    worker.commit();
    return result;
  }

  @Atomic
  public double transaction(Body body) {
    return body.run(Tx.FIELDS);
  }
}
