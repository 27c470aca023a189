package org.loam.jvm.harness;

import java.util.List;
import org.loam.jvm.tm.Library;

/** The answer to --describe, see schema/record.schema.json. */
final class Description {
  private Description() {}

  static Json of(Library library) {
    Json json = new Json().object().field("schema", Run.SCHEMA).object("sync");
    json.field("name", library.name())
        .field("summary", library.summary())
        .field("kind", "managed")
        .field("threads_max", library.threadsMax())
        .field("paper", library.paper())
        .field("guarantees", library.guarantees())
        .field("blame", false);
    parameters(
        json,
        java.util.stream.Stream.concat(Options.MACHINE.stream(), library.parameters().stream())
            .toList());
    json.end().object("build");
    json.field("compiler", Machine.compiler())
        .field("preset", "release")
        .field("flags", "")
        .field("revision", "")
        .end()
        .field("starts_others", true)
        .array("workloads");
    Registry.programs().forEach(program -> describe(json, program));
    return json.end().end();
  }

  private static void describe(Json json, Program program) {
    json.object().field("name", program.name()).field("summary", program.summary());
    json.array("kinds").value("managed").end();
    parameters(json, program.parameters());
    json.array("metrics");
    Metrics.SHARED.forEach(metric -> metric.describe(json));
    program.metrics().forEach(metric -> metric.describe(json));
    json.end().end();
  }

  private static void parameters(Json json, List<Parameter> parameters) {
    json.array("parameters");
    parameters.forEach(parameter -> parameter.describe(json));
    json.end();
  }
}
