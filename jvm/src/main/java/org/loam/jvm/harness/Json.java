package org.loam.jvm.harness;

/** One line of JSON, written from left to right. */
public final class Json {
  private final StringBuilder text = new StringBuilder();
  private final StringBuilder closing = new StringBuilder();

  public Json object() {
    return open('{', '}');
  }

  public Json object(String name) {
    return name(name).open('{', '}');
  }

  public Json array(String name) {
    return name(name).open('[', ']');
  }

  public Json end() {
    int last = closing.length() - 1;
    text.append(closing.charAt(last));
    closing.setLength(last);
    return this;
  }

  /** value: a String, a Boolean, or a number; one that is not finite is left out. */
  public Json field(String name, Object value) {
    return value instanceof Double number && !Double.isFinite(number)
        ? this
        : name(name).put(value);
  }

  public Json value(Object value) {
    separate();
    return put(value);
  }

  @Override
  public String toString() {
    return text.toString();
  }

  private Json open(char first, char last) {
    separate();
    text.append(first);
    closing.append(last);
    return this;
  }

  private void separate() {
    if (!text.isEmpty() && "{[:,".indexOf(text.charAt(text.length() - 1)) < 0) {
      text.append(',');
    }
  }

  private Json name(String name) {
    separate();
    put(name);
    text.append(':');
    return this;
  }

  private Json put(Object value) {
    if (value instanceof Number || value instanceof Boolean) {
      text.append(value);
      return this;
    }
    text.append('"');
    for (char letter : value.toString().toCharArray()) {
      if (letter == '"' || letter == '\\') {
        text.append('\\').append(letter);
      } else if (letter < ' ') {
        text.append(String.format("\\u%04x", (int) letter));
      } else {
        text.append(letter);
      }
    }
    text.append('"');
    return this;
  }
}
