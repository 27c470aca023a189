package org.loam.jvm.harness;

/** What the caller asked for cannot be done: names subject, value, limit, and what to do. */
public final class BadInput extends RuntimeException {
  private static final long serialVersionUID = 1;

  public BadInput(String subject, String value, String limit, String hint) {
    super(
        subject
            + (value.isEmpty() ? "" : "=" + value)
            + ": "
            + limit
            + (hint.isEmpty() ? "" : " (" + hint + ")"));
  }
}
