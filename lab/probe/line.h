// line: one JSON object at a time in a static buffer. No stdio and no malloc: both would reach the allocator under
// test.
#ifndef LOAM_PROBE_LINE_H
#define LOAM_PROBE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

// P1 text_used <= sizeof text: a line that would not fit is not written (missing record = unproven, never a wrong one).
static char text[32 * 1024];
static size_t text_used;
static bool text_full;

static void put_raw(const char* s, size_t n) {
  if (n > sizeof text - text_used) {
    text_full = true;
    return;
  }
  memcpy(text + text_used, s, n);
  text_used += n;
}

static void put(const char* s) { put_raw(s, strlen(s)); }

static void put_number(long long value) {
  char digits[24];
  size_t at = sizeof digits;
  unsigned long long rest = value < 0 ? 0ULL - (unsigned long long)value : (unsigned long long)value;
  do digits[--at] = (char)('0' + rest % 10);
  while ((rest /= 10) != 0);
  if (value < 0) digits[--at] = '-';
  put_raw(digits + at, sizeof digits - at);
}

static void put_hex(const unsigned char* bytes, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    put_raw(&"0123456789abcdef"[bytes[i] >> 4], 1);
    put_raw(&"0123456789abcdef"[bytes[i] & 15], 1);
  }
}

static void put_string(const char* s) {
  put("\"");
  for (; *s != '\0'; ++s) {
    const unsigned char c = (unsigned char)*s;
    if (c == '"' || c == '\\') {
      put("\\");
      put_raw(s, 1);
    } else if (c < 0x20) {
      put("\\u00");
      put_hex(&c, 1);
    } else {
      put_raw(s, 1);
    }
  }
  put("\"");
}

static void put_key(const char* key) {
  put(text_used > 1 && text[text_used - 1] != '{' ? ",\"" : "\"");
  put(key);
  put("\":");
}

static void put_key_number(const char* key, long long value) {
  put_key(key);
  put_number(value);
}

#endif
