package org.loam.jvm.programs.bench7;

import org.loam.jvm.tm.Ints;
import org.loam.jvm.tm.Tx;

/**
 * The text of a document: a sentence, repeated while it fits. In two forms, because they log
 * differently. As a string a text never changes: a change makes a new one. As an array each
 * character is read and written by the transaction.
 */
final class Text {
  static final String OLD_START = "I am";
  static final String NEW_START = "This is";
  static final char COUNTED = 'I';
  static final char EXCHANGED = 'i';

  private final String string; // null as an array
  private final Ints chars; // null as a string

  private Text(String string, Ints chars) {
    this.string = string;
    this.chars = chars;
  }

  static Text of(Tx tx, String text, boolean array) {
    return array ? new Text(null, new Ints(tx, text.chars().toArray())) : new Text(text, null);
  }

  static String document(int id, int room) {
    return repeated("I am the documentation for composite part #" + id + "\n", room);
  }

  static String manual(int room) {
    return repeated("I am the manual for module #1\n", room);
  }

  private static String repeated(String sentence, int room) {
    return sentence.repeat(Math.max(1, room / sentence.length()));
  }

  int length() {
    return string != null ? string.length() : chars.length();
  }

  char at(Tx tx, int index) {
    return string != null ? string.charAt(index) : (char) chars.get(tx, index);
  }

  long count(Tx tx, char wanted) {
    long count = 0;
    for (int i = 0; i < length(); ++i) {
      count += at(tx, i) == wanted ? 1 : 0;
    }
    return count;
  }

  private boolean startsWith(Tx tx, String start) {
    if (length() < start.length()) {
      return false;
    }
    for (int i = 0; i < start.length(); ++i) {
      if (at(tx, i) != start.charAt(i)) {
        return false;
      }
    }
    return true;
  }

  /** All of it, for what looks at it as a whole. */
  String whole(Tx tx) {
    if (string != null) {
      return string;
    }
    StringBuilder all = new StringBuilder(length());
    for (int i = 0; i < length(); ++i) {
      all.append(at(tx, i));
    }
    return all.toString();
  }

  /** Exchanges the two starts of a document; returns how many documents have changed: 1. */
  static long exchangeStart(Tx tx, Document document) {
    Text text = document.text(tx);
    boolean isOld = text.startsWith(tx, OLD_START);
    String before = isOld ? OLD_START : NEW_START;
    String after = isOld ? NEW_START : OLD_START;
    String changed = after.concat(text.whole(tx).substring(before.length()));
    document.text(tx, of(tx, changed, text.string == null));
    return 1;
  }

  /** Replaces every counted letter by the other one, or back; returns how many. */
  static long exchangeLetter(Tx tx, Document manual) {
    Text text = manual.text(tx);
    boolean has = text.at(tx, 0) == COUNTED;
    char before = has ? COUNTED : EXCHANGED;
    char after = has ? EXCHANGED : COUNTED;
    if (text.string != null) {
      manual.text(tx, of(tx, text.string.replace(before, after), false));
      return text.count(tx, before);
    }
    long count = 0;
    for (int i = 0; i < text.length(); ++i) {
      if (text.at(tx, i) == before) {
        text.chars.set(tx, i, after);
        ++count;
      }
    }
    return count;
  }
}
