/* What the parts of the facade share. Everything here is static: each language compiles kvartet_flat.c, which
 * includes the parts, as one unit. */
#ifndef KVARTET_BINDINGS_FLAT_INTERNAL_H_
#define KVARTET_BINDINGS_FLAT_INTERNAL_H_

#include <kvartet/experimental.h>
#include <kvartet/kvartet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kvartet_flat.h"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the facade passes little-endian records in place"
#endif

/* Where a failing call writes its text. */
typedef struct flat_error {
  uint8_t* text;
  size_t cap;
} flat_error_t;

#define FLAT_ERROR ((flat_error_t){err, err_cap})

/* A failure that the facade itself found. Always returns `status`. */
__attribute__((format(printf, 3, 4))) static int64_t FlatRefuse(flat_error_t error, int64_t status,
                                                                const char* format, ...) {
  if (error.text != NULL && error.cap > 0) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf((char*)error.text, error.cap, format, arguments);
    va_end(arguments);
  }
  return status;
}

/* The result of a library call: `value` when it succeeded, else its status with the library's text, read on
 * the thread that made the call. */
static int64_t FlatResult(kvt_status_t status, int64_t value, flat_error_t error) {
  if (status == KVT_OK) return value;
  if (error.text != NULL && error.cap > 0) {
    char text[KVT_ERROR_TEXT_MAX];
    size_t needed = 0;
    if (kvt_last_error(text, sizeof text, &needed) != KVT_OK) needed = 0;
    if (needed > error.cap - 1) needed = error.cap - 1;
    memcpy(error.text, text, needed);
    error.text[needed] = 0;
  }
  return status;
}

/* FlatResult of a call that copies `needed` bytes out, or writes nothing when they do not fit. */
static int64_t FlatNeeded(kvt_status_t status, size_t needed, flat_error_t error) {
  return FlatResult(status == KVT_ERR_BUFFER_TOO_SMALL ? KVT_OK : status, (int64_t)needed, error);
}

static int64_t FlatNoMemory(flat_error_t error, size_t bytes) {
  return FlatRefuse(error, KVT_ERR_OUT_OF_MEMORY, "no memory for %zu bytes", bytes);
}

/* Copies out what a call produced; see the header for the result. */
static int64_t FlatCopyOut(const void* data, size_t len, uint8_t* buf, size_t cap) {
  if (len <= cap && len > 0) memcpy(buf, data, len);
  return (int64_t)len;
}

/* Records: how a word of each becomes a field of a structure. */
enum { FLAT_U8, FLAT_U32, FLAT_I32, FLAT_U64, FLAT_I64, FLAT_F32, FLAT_F64 };

typedef struct flat_field {
  const char* name;
  size_t offset;
  int kind;
} flat_field_t;

#define FLAT_FIELD(type, field, kind) \
  { #field, offsetof(type, field), kind }

static int64_t FlatReadField(const flat_field_t* field, int64_t word, void* structure, flat_error_t error) {
  uint8_t* const to = (uint8_t*)structure + field->offset;
  int64_t low = INT64_MIN, high = INT64_MAX;
  double number;
  float single;
  switch (field->kind) {
    case FLAT_U8:
      low = 0, high = UINT8_MAX;
      break;
    case FLAT_U32:
      low = 0, high = UINT32_MAX;
      break;
    case FLAT_I32:
      low = INT32_MIN, high = INT32_MAX;
      break;
    case FLAT_U64:
      low = 0;
      break;
    default:
      break;
  }
  if (word < low || word > high) {
    return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT, "%s is %lld; allowed are %lld to %lld", field->name,
                      (long long)word, (long long)low, (long long)high);
  }
  switch (field->kind) {
    case FLAT_U8:
      *to = (uint8_t)word;
      break;
    case FLAT_U32:
    case FLAT_I32:
      memcpy(to, &word, 4);
      break;
    case FLAT_F32:
      memcpy(&number, &word, sizeof number);
      single = (float)number;
      memcpy(to, &single, sizeof single);
      break;
    default:
      memcpy(to, &word, 8);
      break;
  }
  return 0;
}

/* Fills the fields that the record has; the others keep what they hold. */
static int64_t FlatReadRecord(const char* name, const flat_field_t* fields, size_t count, const uint8_t* data,
                              size_t len, void* structure, flat_error_t error) {
  if (len % 8 != 0 || len / 8 > count) {
    return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT,
                      "%s record of %zu bytes; allowed are 0 to %zu words of 8", name, len, count);
  }
  for (size_t i = 0; i < len / 8; ++i) {
    int64_t word;
    memcpy(&word, data + i * 8, sizeof word);
    const int64_t read = FlatReadField(&fields[i], word, structure, error);
    if (read < 0) return read;
  }
  return 0;
}

static void FlatWriteRecord(const flat_field_t* fields, size_t count, const void* structure, uint8_t* to) {
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* const from = (const uint8_t*)structure + fields[i].offset;
    int64_t word = 0;
    int32_t narrow;
    float single;
    double number;
    switch (fields[i].kind) {
      case FLAT_U8:
        word = *from;
        break;
      case FLAT_U32:
        memcpy(&word, from, 4);
        break;
      case FLAT_I32:
        memcpy(&narrow, from, 4), word = narrow;
        break;
      case FLAT_F32:
        memcpy(&single, from, 4);
        number = single;
        memcpy(&word, &number, 8);
        break;
      default:
        memcpy(&word, from, 8);
        break;
    }
    memcpy(to + i * 8, &word, 8);
  }
}

static int64_t FlatRecordOut(const flat_field_t* fields, size_t count, const void* structure, uint8_t* buf,
                             size_t cap) {
  if (cap >= count * 8) FlatWriteRecord(fields, count, structure, buf);
  return (int64_t)(count * 8);
}

#define FLAT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Number of keys in `len` bytes, at least 0, or a refusal. */
static int64_t FlatKeyCount(size_t len, flat_error_t error) {
  if (len % KVT_KEY_BYTES != 0) {
    return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT, "keys are %zu bytes; that is no multiple of %d", len,
                      KVT_KEY_BYTES);
  }
  return (int64_t)(len / KVT_KEY_BYTES);
}

static int64_t FlatKeyCheck(size_t len, flat_error_t error) {
  if (len == KVT_KEY_BYTES) return 0;
  return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT, "key is %zu bytes; it is %d", len, KVT_KEY_BYTES);
}

/* Checks an array of `size`-byte elements. */
static int64_t FlatArrayCount(const char* name, size_t len, size_t size, flat_error_t error) {
  if (len % size != 0) {
    return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT, "%s are %zu bytes; that is no multiple of %zu", name,
                      len, size);
  }
  return (int64_t)(len / size);
}

/* Copies `whole` bytes, or zeroes when there are none. */
static int64_t FlatFixed(const char* name, const uint8_t* data, size_t len, size_t whole, uint8_t* to,
                         flat_error_t error) {
  if (len != 0 && len != whole) {
    return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT, "%s is %zu bytes; it is %zu or none", name, len,
                      whole);
  }
  if (len == whole) {
    memcpy(to, data, whole);
  } else {
    memset(to, 0, whole);
  }
  return 0;
}

/* An aligned copy that the caller frees; never NULL on success. */
static void* FlatCopy(const uint8_t* data, size_t len) {
  void* const copy = malloc(len > 0 ? len : 1);
  if (copy != NULL && len > 0) memcpy(copy, data, len);
  return copy;
}

#endif /* KVARTET_BINDINGS_FLAT_INTERNAL_H_ */
