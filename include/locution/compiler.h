/* Locution's compiler as a library: an ONNX file to a .loc file, or to a model that runs in this process. The second library
 * (liblocution_compiler); what it makes needs the first alone (locution.h). */
#ifndef LOCUTION_COMPILER_H
#define LOCUTION_COMPILER_H

#include "locution/locution.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Told what is under way, `fraction` being of the whole, from the thread that compiles. */
typedef struct locution_progress {
  size_t struct_size;
  void* user;
  void (*report)(void* user, const char* what, double fraction);
} locution_progress;

/* `options` are those of the command line, one a string: "--threads=2", "--cpu=x86-64-v3", "--shape=x=1x3x224x224",
 * "--scheduler=analytic". Unknown ones are an error. `progress` may be NULL. Nothing is left half-written.
 * Errors: LOCUTION_CANNOT_COMPILE with the file, the node and the tensors; LOCUTION_INVALID_ARGUMENT for the options. */
LOCUTION_API locution_status locution_compile(const char* model_path, const char* const* options, size_t option_count,
                                              const char* output_path, const locution_progress* progress,
                                              locution_error* error);

/* The same without a file: for this machine, and ready to run. Free with locution_model_free.
 * Dims and values that decide shapes need not be given: a model with such inputs (their ports have dims of -1) takes any shape.
 * locution_run then compiles it the first time a context of it brings these shapes, and keeps the code for the 32 sets of shapes
 * used last, for fewer when their weights pass 512 MB: memory does not grow with the number of shapes. What does not fit the model
 * is an error of that run. arena_bytes, weight_bytes and flops of such a model are 0. */
LOCUTION_API locution_status locution_compile_model(const char* model_path, const char* const* options,
                                                    size_t option_count, const locution_progress* progress,
                                                    locution_model** model, locution_error* error);

#ifdef __cplusplus
}
#endif

#endif
