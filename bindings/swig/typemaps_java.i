/* Java: a direct ByteBuffer, used in place from its position 0 to its capacity, or a byte[], which is copied;
 * null is no bytes. Constants are compile-time constants. */
%javaconst(1);

%typemap(jni) (const uint8_t* DATA, size_t LEN), (uint8_t* BUF, size_t CAP) "jobject"
%typemap(jtype) (const uint8_t* DATA, size_t LEN), (uint8_t* BUF, size_t CAP) "Object"
%typemap(jstype) (const uint8_t* DATA, size_t LEN), (uint8_t* BUF, size_t CAP) "Object"
%typemap(javain) (const uint8_t* DATA, size_t LEN), (uint8_t* BUF, size_t CAP) "$javainput"

%{
typedef struct kvt_java_bytes {
  uint8_t* data;
  size_t len;
  jbyte* copy; /* of an array; NULL for a direct buffer */
} kvt_java_bytes_t;

static jclass kvt_byte_array; /* set once, when the library is loaded */

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void* reserved) {
  JNIEnv* env = NULL;
  (void)reserved;
  if ((*vm)->GetEnv(vm, (void**)&env, JNI_VERSION_1_8) != JNI_OK) return JNI_ERR;
  jclass found = (*env)->FindClass(env, "[B");
  if (found == NULL) return JNI_ERR;
  kvt_byte_array = (jclass)(*env)->NewGlobalRef(env, found);
  return kvt_byte_array != NULL ? JNI_VERSION_1_8 : JNI_ERR;
}

/* @return 0, or -1 with a pending exception. */
static int KvtJavaBytes(JNIEnv* env, jobject object, kvt_java_bytes_t* bytes) {
  bytes->data = NULL;
  bytes->len = 0;
  bytes->copy = NULL;
  if (object == NULL) return 0;
  if (!(*env)->IsInstanceOf(env, object, kvt_byte_array)) {
    bytes->data = (uint8_t*)(*env)->GetDirectBufferAddress(env, object);
    if (bytes->data != NULL) {
      bytes->len = (size_t)(*env)->GetDirectBufferCapacity(env, object);
      return 0;
    }
    jclass failure = (*env)->FindClass(env, "java/lang/IllegalArgumentException");
    if (failure != NULL) (*env)->ThrowNew(env, failure, "a direct ByteBuffer or a byte[] is required");
    return -1;
  }
  bytes->copy = (*env)->GetByteArrayElements(env, (jbyteArray)object, NULL);
  if (bytes->copy == NULL) return -1;
  bytes->data = (uint8_t*)bytes->copy;
  bytes->len = (size_t)(*env)->GetArrayLength(env, (jbyteArray)object);
  return 0;
}

static void KvtJavaBytesEnd(JNIEnv* env, jobject object, kvt_java_bytes_t* bytes, jint mode) {
  if (bytes->copy != NULL) (*env)->ReleaseByteArrayElements(env, (jbyteArray)object, bytes->copy, mode);
  bytes->copy = NULL;
}
%}

%typemap(in) (const uint8_t* DATA, size_t LEN) (kvt_java_bytes_t bytes), (uint8_t* BUF, size_t CAP) (kvt_java_bytes_t bytes) {
  if (KvtJavaBytes(jenv, $input, &bytes) != 0) return $null;
  $1 = bytes.data;
  $2 = bytes.len;
}
%typemap(freearg) (const uint8_t* DATA, size_t LEN) { KvtJavaBytesEnd(jenv, $input, &bytes$argnum, JNI_ABORT); }
%typemap(freearg) (uint8_t* BUF, size_t CAP) { KvtJavaBytesEnd(jenv, $input, &bytes$argnum, 0); }
