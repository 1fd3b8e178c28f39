/* Locution's runtime: loads a compiled model (.loc) and runs it. C11; no compiler, no LLVM, no protobuf behind it.
 *
 *     locution_model *model;
 *     locution_error error = LOCUTION_ERROR_INIT;
 *     if (locution_model_load("net.loc", &model, &error)) { fprintf(stderr, "%s\n", error.message); exit(1); }
 *
 * A model is immutable and may be shared by threads. A context belongs to one caller at a time and holds the memory of a run;
 * contexts of one model run at the same time. No function keeps a pointer to a caller's struct, and none calls back but the
 * allocator, from the thread that runs. Structs begin with their size, so that fields can be added later: set it with the
 * _INIT macros. A function that can fail returns a status (0: all is well) and puts a message into `error`, which may be NULL. */
#ifndef LOCUTION_LOCUTION_H
#define LOCUTION_LOCUTION_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LOCUTION_API __attribute__((visibility("default")))
#else
#define LOCUTION_API
#endif

/* An enum may hold any int, in C++ as in C: a value that a caller makes up is refused, not undefined. */
#ifdef __cplusplus
#define LOCUTION_INT_ENUM : int
#else
#define LOCUTION_INT_ENUM
#endif

#define LOCUTION_VERSION_MAJOR 0
#define LOCUTION_VERSION_MINOR 1
#define LOCUTION_VERSION_PATCH 0
#define LOCUTION_MAX_RANK 16

typedef enum locution_status LOCUTION_INT_ENUM {
  LOCUTION_OK = 0,
  LOCUTION_INVALID_ARGUMENT = 1, /* a null pointer, a wrong index, dtype, shape or size */
  LOCUTION_CANNOT_LOAD = 2,      /* missing, not a .loc, damaged, of another version or for another CPU */
  LOCUTION_RUN_FAILED = 3,       /* what a run says about its inputs: an index out of range, ... */
  LOCUTION_OUT_OF_MEMORY = 4,
  LOCUTION_CANNOT_COMPILE = 5, /* compiler.h: the model can't be read or is not supported */
  LOCUTION_INTERNAL = 6        /* a bug of ours */
} locution_status;

/* Written by the function that fails; a message of one line as a rule, cut to fit. */
typedef struct locution_error {
  size_t struct_size;
  locution_status status;
  char message[2048];
} locution_error;
#define LOCUTION_ERROR_INIT \
  { sizeof(locution_error), LOCUTION_OK, "" }

/* The values are fixed for good. */
typedef enum locution_dtype LOCUTION_INT_ENUM {
  LOCUTION_FLOAT32 = 0,
  LOCUTION_FLOAT64 = 1,
  LOCUTION_FLOAT16 = 2,
  LOCUTION_BFLOAT16 = 3,
  LOCUTION_INT8 = 4,
  LOCUTION_INT16 = 5,
  LOCUTION_INT32 = 6,
  LOCUTION_INT64 = 7,
  LOCUTION_UINT8 = 8,
  LOCUTION_UINT16 = 9,
  LOCUTION_UINT32 = 10,
  LOCUTION_UINT64 = 11,
  LOCUTION_BOOL = 12,   /* a byte, 0 or 1 */
  LOCUTION_STRING = 13, /* an array of locution_string */
  LOCUTION_COMPLEX64 = 14,
  LOCUTION_COMPLEX128 = 15,
  LOCUTION_FLOAT8E4M3FN = 16,
  LOCUTION_FLOAT8E4M3FNUZ = 17,
  LOCUTION_FLOAT8E5M2 = 18,
  LOCUTION_FLOAT8E5M2FNUZ = 19,
  LOCUTION_FLOAT8E8M0 = 20,
  LOCUTION_FLOAT4E2M1 = 21, /* packed, low bits first, as are the following */
  LOCUTION_INT4 = 22,
  LOCUTION_UINT4 = 23,
  LOCUTION_INT2 = 24,
  LOCUTION_UINT2 = 25
} locution_dtype;

typedef enum locution_kind LOCUTION_INT_ENUM {
  LOCUTION_TENSOR = 0,
  LOCUTION_SEQUENCE = 1,
  LOCUTION_OPTIONAL = 2
} locution_kind;

/* UTF-8, not terminated. */
typedef struct locution_string {
  const char* data;
  size_t size;
} locution_string;

/* Row-major elements. Input: everything is the caller's to set; the data may lie at any address and is only read.
 * Output, one of:
 *   data set:   the caller's memory of `capacity` bytes, written directly when the shape is fixed;
 *   data NULL:  memory from the allocator, or without one the context's own, valid until its next run.
 * The run sets dtype, rank and dims, and `data` where it was NULL. */
typedef struct locution_tensor {
  size_t struct_size;
  locution_dtype dtype;
  int32_t rank;
  int64_t dims[LOCUTION_MAX_RANK];
  void* data;
  size_t capacity; /* bytes at data; for inputs 0 means as many as dtype and dims need */
} locution_tensor;
#define LOCUTION_TENSOR_INIT \
  { sizeof(locution_tensor), LOCUTION_FLOAT32, 0, {0}, NULL, 0 }

/* Memory for the outputs whose data is NULL. Returns NULL when there is none. Strings' bytes lie in the same block. */
typedef struct locution_allocator {
  size_t struct_size;
  void* user;
  void* (*allocate)(void* user, size_t output, size_t bytes, size_t alignment);
} locution_allocator;

typedef struct locution_port {
  size_t struct_size;
  const char* name; /* this and dims: alive as long as the model */
  locution_dtype dtype;
  locution_kind kind;
  int32_t rank;
  const int64_t* dims; /* -1: depends on data (outputs); any extent (inputs, see compiler.h) */
} locution_port;
#define LOCUTION_PORT_INIT \
  { sizeof(locution_port), NULL, LOCUTION_FLOAT32, LOCUTION_TENSOR, 0, NULL }

typedef struct locution_model_info {
  size_t struct_size;
  const char* name; /* strings: alive as long as the model */
  const char* compiler_version;
  const char* triple; /* what it was compiled for */
  const char* cpu;
  int64_t arena_bytes;  /* of each context */
  int64_t weight_bytes; /* once for all contexts */
  double flops;         /* of one run */
} locution_model_info;
#define LOCUTION_MODEL_INFO_INIT \
  { sizeof(locution_model_info), NULL, NULL, NULL, NULL, 0, 0, 0 }

typedef struct locution_model locution_model;
typedef struct locution_context locution_context;
typedef struct locution_thread_pool locution_thread_pool;

/* "0.1.0" of the library, which may differ from the header's. */
LOCUTION_API const char* locution_version(void);
/* "float32"; NULL for a value that is no dtype. */
LOCUTION_API const char* locution_dtype_name(locution_dtype dtype);
/* Bytes of `count` elements; for strings of as many locution_string. */
LOCUTION_API size_t locution_dtype_bytes(locution_dtype dtype, size_t count);

/* Maps the file: its constants are shared by all processes that do. */
LOCUTION_API locution_status locution_model_load(const char* path, locution_model** model, locution_error* error);
/* From the bytes of a .loc file. With `borrow` they are used in place where they are 64-byte aligned, and must then outlive
 * the model and its contexts; otherwise they are copied. */
LOCUTION_API locution_status locution_model_load_memory(const void* data, size_t size, int borrow,
                                                        locution_model** model, locution_error* error);
/* Contexts keep what they need. NULL is fine. */
LOCUTION_API void locution_model_free(locution_model* model);

LOCUTION_API locution_status locution_model_get_info(const locution_model* model, locution_model_info* info);
LOCUTION_API size_t locution_model_input_count(const locution_model* model);
LOCUTION_API size_t locution_model_output_count(const locution_model* model);
LOCUTION_API locution_status locution_model_input(const locution_model* model, size_t index, locution_port* port);
LOCUTION_API locution_status locution_model_output(const locution_model* model, size_t index, locution_port* port);
/* The index of the input or output of that name, or -1. */
LOCUTION_API int64_t locution_model_find_input(const locution_model* model, const char* name);
LOCUTION_API int64_t locution_model_find_output(const locution_model* model, const char* name);
/* The model's own metadata, sorted by key. */
LOCUTION_API size_t locution_model_metadata_count(const locution_model* model);
LOCUTION_API locution_status locution_model_metadata(const locution_model* model, size_t index, const char** key,
                                                     const char** value);

/* `threads` counts the caller; 0: as many as this process may use CPUs. Idle threads sleep. May be shared by contexts. */
LOCUTION_API locution_status locution_thread_pool_create(int32_t threads, locution_thread_pool** pool,
                                                         locution_error* error);
LOCUTION_API void locution_thread_pool_free(locution_thread_pool* pool);

/* `pool` may be NULL: the caller's thread alone. The same bits come out at any number of threads. */
LOCUTION_API locution_status locution_context_create(const locution_model* model, locution_thread_pool* pool,
                                                     locution_context** context, locution_error* error);
LOCUTION_API void locution_context_free(locution_context* context);

/* Inputs and outputs in the model's order, all of them. `allocator` may be NULL. */
LOCUTION_API locution_status locution_run(locution_context* context, const locution_tensor* inputs, size_t input_count,
                                          locution_tensor* outputs, size_t output_count,
                                          const locution_allocator* allocator, locution_error* error);

#ifdef __cplusplus
}
#endif

#endif
