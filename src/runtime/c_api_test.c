/* The C API from C: usage: c_api_test MODEL, the file that c_api_test_model writes. */
#include <locution/compiler.h>
#include <locution/locution.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;
#define EXPECT(condition)                                             \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                     \
    }                                                                 \
  } while (0)
#define EXPECT_TEXT(got, wanted)                                                            \
  do {                                                                                      \
    if (strstr((got), (wanted)) == NULL) {                                                  \
      fprintf(stderr, "%s:%d: \"%s\" lacks \"%s\"\n", __FILE__, __LINE__, (got), (wanted)); \
      ++failures;                                                                           \
    }                                                                                       \
  } while (0)

enum { N = 1000 };

static locution_tensor floats(float* data) {
  locution_tensor t = LOCUTION_TENSOR_INIT;
  t.rank = 1;
  t.dims[0] = N;
  t.data = data;
  return t;
}

static void test_queries(const locution_model* model) {
  EXPECT(strcmp(locution_version(), "0.1.0") == 0);
  EXPECT(strcmp(locution_dtype_name(LOCUTION_BFLOAT16), "bfloat16") == 0);
  EXPECT(locution_dtype_name((locution_dtype)99) == NULL);
  EXPECT(locution_dtype_bytes(LOCUTION_INT4, 3) == 2);
  locution_model_info info = LOCUTION_MODEL_INFO_INIT;
  EXPECT(locution_model_get_info(model, &info) == LOCUTION_OK);
  EXPECT(strcmp(info.name, "tiny") == 0 && info.weight_bytes == 4 * N && info.flops == 2e6);
  EXPECT(locution_model_input_count(model) == 1 && locution_model_output_count(model) == 4);
  locution_port port = LOCUTION_PORT_INIT;
  EXPECT(locution_model_output(model, 2, &port) == LOCUTION_OK);
  EXPECT(strcmp(port.name, "where") == 0 && port.dtype == LOCUTION_INT64 && port.rank == 2 && port.dims[1] == -1);
  EXPECT(locution_model_output(model, 4, &port) == LOCUTION_INVALID_ARGUMENT);
  port.struct_size = 3;
  EXPECT(locution_model_input(model, 0, &port) == LOCUTION_INVALID_ARGUMENT);
  EXPECT(locution_model_find_input(model, "x") == 0 && locution_model_find_input(model, "y") == -1);
  EXPECT(locution_model_find_output(model, "words") == 3);
  const char *key = NULL, *value = NULL;
  EXPECT(locution_model_metadata_count(model) == 2);
  EXPECT(locution_model_metadata(model, 1, &key, &value) == LOCUTION_OK);
  EXPECT(strcmp(key, "licence") == 0 && strcmp(value, "none") == 0);
}

static void* from_malloc(void* user, size_t output, size_t bytes, size_t alignment) {
  (void)output, (void)alignment;
  ++*(int*)user;
  return malloc(bytes > 0 ? bytes : 1);
}
static void* from_nowhere(void* user, size_t output, size_t bytes, size_t alignment) {
  (void)user, (void)output, (void)bytes, (void)alignment;
  return NULL;
}

static void test_run(const locution_model* model, locution_thread_pool* pool) {
  locution_error error = LOCUTION_ERROR_INIT;
  locution_context* context = NULL;
  EXPECT(locution_context_create(model, pool, &context, &error) == LOCUTION_OK);
  float *x = calloc(N, sizeof *x), *y = calloc(N, sizeof *y);
  locution_tensor in = floats(x), out[4];
  for (int i = 0; i < 4; ++i) out[i] = (locution_tensor)LOCUTION_TENSOR_INIT;

  /* The context's own memory; the structs used again as they are. */
  for (int round = 1; round < 4; ++round) {
    x[round] = (float)round;
    EXPECT(locution_run(context, &in, 1, out, 4, NULL, &error) == LOCUTION_OK);
    EXPECT(((float*)out[0].data)[round] == 4 * (float)round);
    EXPECT(out[2].rank == 2 && out[2].dims[0] == 1 && out[2].dims[1] == round);
    EXPECT(((int64_t*)out[2].data)[round - 1] == round);
    locution_string word = ((locution_string*)out[3].data)[1];
    EXPECT(out[3].dtype == LOCUTION_STRING && word.size == 3 && memcmp(word.data, "dog", 3) == 0);
  }

  /* Memory of the caller's, and an allocator for the rest. */
  int calls = 0;
  locution_allocator allocator = {sizeof allocator, &calls, from_malloc};
  for (int i = 0; i < 4; ++i) out[i] = (locution_tensor)LOCUTION_TENSOR_INIT;
  out[0].data = y;
  out[0].capacity = N * sizeof *y;
  EXPECT(locution_run(context, &in, 1, out, 4, &allocator, &error) == LOCUTION_OK);
  EXPECT(calls == 3 && out[0].data == y && y[3] == 12);
  EXPECT(((float*)out[1].data)[2] == 1 && ((int64_t*)out[2].data)[0] == 1);
  EXPECT(memcmp(((locution_string*)out[3].data)[0].data, "cat", 3) == 0);
  for (int i = 1; i < 4; ++i) free(out[i].data), out[i] = (locution_tensor)LOCUTION_TENSOR_INIT;

  /* Back to the context's own. */
  out[0] = (locution_tensor)LOCUTION_TENSOR_INIT;
  y[3] = 0;
  EXPECT(locution_run(context, &in, 1, out, 4, NULL, &error) == LOCUTION_OK);
  EXPECT(out[0].data != y && y[3] == 0 && ((float*)out[0].data)[3] == 12);

  /* What is wrong is said. */
  for (int i = 0; i < 4; ++i) out[i] = (locution_tensor)LOCUTION_TENSOR_INIT;
  EXPECT(locution_run(context, &in, 1, out, 3, NULL, &error) == LOCUTION_INVALID_ARGUMENT);
  EXPECT_TEXT(error.message, "the model has 1 inputs and 4 outputs, not 1 and 3");
  in.dims[0] = 3;
  EXPECT(locution_run(context, &in, 1, out, 4, NULL, &error) == LOCUTION_INVALID_ARGUMENT);
  EXPECT(error.status == LOCUTION_INVALID_ARGUMENT);
  EXPECT_TEXT(error.message, "input \"x\" must be float32[1000], but is float32[3]");
  in = floats(x);
  in.capacity = 12;
  EXPECT(locution_run(context, &in, 1, out, 4, NULL, &error) == LOCUTION_INVALID_ARGUMENT);
  EXPECT_TEXT(error.message, "input \"x\": 12 bytes of data, and 4000 are needed");
  in = floats(NULL);
  EXPECT(locution_run(context, &in, 1, out, 4, NULL, NULL) == LOCUTION_INVALID_ARGUMENT);
  in = floats(x);
  in.rank = 99;
  EXPECT(locution_run(context, &in, 1, out, 4, NULL, NULL) == LOCUTION_INVALID_ARGUMENT);
  in = floats(x);
  out[0].data = y;
  out[0].capacity = 8;
  EXPECT(locution_run(context, &in, 1, out, 4, NULL, &error) == LOCUTION_INVALID_ARGUMENT);
  EXPECT_TEXT(error.message, "output \"y\": 8 bytes of memory, and 4000 are needed");
  out[0] = (locution_tensor)LOCUTION_TENSOR_INIT;
  allocator.allocate = from_nowhere;
  EXPECT(locution_run(context, &in, 1, out, 4, &allocator, &error) == LOCUTION_OUT_OF_MEMORY);
  EXPECT(locution_run(NULL, &in, 1, out, 4, NULL, &error) == LOCUTION_INVALID_ARGUMENT);
  locution_context_free(context);
  free(x);
  free(y);
}

static void test_loading(const char* path) {
  locution_error error = LOCUTION_ERROR_INIT;
  locution_model* model = (locution_model*)&error;
  EXPECT(locution_model_load("/nowhere/net.loc", &model, &error) == LOCUTION_CANNOT_LOAD && model == NULL);
  EXPECT_TEXT(error.message, "/nowhere/net.loc");
  EXPECT(locution_model_load(NULL, &model, NULL) == LOCUTION_INVALID_ARGUMENT);
  EXPECT(locution_model_load(__FILE__, &model, &error) == LOCUTION_CANNOT_LOAD);

  FILE* file = fopen(path, "rb");
  if (file == NULL) {
    ++failures;
    return;
  }
  static _Alignas(64) char bytes[1 << 16];
  size_t size = fread(bytes, 1, sizeof bytes - 1, file);
  fclose(file);
  for (int borrow = 0; borrow < 2; ++borrow) {
    EXPECT(locution_model_load_memory(bytes, size, borrow, &model, &error) == LOCUTION_OK);
    EXPECT(locution_model_input_count(model) == 1);
    locution_model_free(model);
  }
  memmove(bytes + 1, bytes, size);
  EXPECT(locution_model_load_memory(bytes + 1, size, 1, &model, &error) == LOCUTION_OK);
  locution_model_free(model);
  bytes[size / 2] ^= 1;
  EXPECT(locution_model_load_memory(bytes + 1, size, 1, &model, &error) == LOCUTION_CANNOT_LOAD);
  EXPECT_TEXT(error.message, "the model in memory is damaged");
  locution_model_free(NULL);
}

static void* run_often(void* argument) {
  locution_context* context = argument;
  static float x[N];
  locution_tensor in = floats(x), out[4];
  for (int i = 0; i < 4; ++i) out[i] = (locution_tensor)LOCUTION_TENSOR_INIT;
  for (int i = 0; i < 100; ++i)
    if (locution_run(context, &in, 1, out, 4, NULL, NULL) != LOCUTION_OK) return argument;
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  locution_error error = LOCUTION_ERROR_INIT;
  locution_model* model = NULL;
  if (locution_model_load(argv[1], &model, &error) != LOCUTION_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  locution_thread_pool* pool = NULL;
  EXPECT(locution_thread_pool_create(-1, &pool, &error) == LOCUTION_INVALID_ARGUMENT);
  EXPECT(locution_thread_pool_create(2, &pool, &error) == LOCUTION_OK);
  test_queries(model);
  test_loading(argv[1]);
  test_run(model, NULL);
  test_run(model, pool);

  /* Contexts outlive the handles of their model and pool, and run at the same time. */
  locution_context* contexts[3];
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) EXPECT(locution_context_create(model, pool, &contexts[i], &error) == LOCUTION_OK);
  locution_model_free(model);
  locution_thread_pool_free(pool);
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, run_often, contexts[i]);
  for (int i = 0; i < 3; ++i) {
    void* failed = NULL;
    pthread_join(threads[i], &failed);
    EXPECT(failed == NULL);
    locution_context_free(contexts[i]);
  }
  if (failures == 0) puts("ok");
  return failures != 0;
}
