/* Runs an ONNX model of open dims at the shapes it is given, one after the other, in one process.
 *     any_shape net.onnx 1x3x224x224 1x3x320x256 ...
 * The model must have one input of float32; it is ones. Each shape is compiled when it is first met, and kept while it comes back. */
#include <locution/compiler.h>
#include <locution/locution.h>
#include <stdio.h>
#include <stdlib.h>

static void stop(const char* what, const locution_error* error) {
  fprintf(stderr, "any_shape: %s%s%s\n", what, error ? ": " : "", error ? error->message : "");
  exit(1);
}

/* "1x3x224x224" as dims, filled with ones. */
static locution_tensor ones(const char* text) {
  locution_tensor tensor = LOCUTION_TENSOR_INIT;
  size_t elements = 1;
  char* end = (char*)text;
  do {
    if (tensor.rank == LOCUTION_MAX_RANK) stop("too many dims", NULL);
    tensor.dims[tensor.rank] = strtoll(tensor.rank > 0 ? end + 1 : end, &end, 10);
    if (tensor.dims[tensor.rank] < 1 || tensor.dims[tensor.rank] > 1 << 20)
      stop("a shape is written 1x3x224x224", NULL);
    elements *= (size_t)tensor.dims[tensor.rank++];
  } while (*end == 'x');
  if (*end != '\0' || elements > (size_t)1 << 30) stop("a shape is written 1x3x224x224", NULL);
  float* values = malloc(elements * sizeof *values);
  if (values == NULL) stop("out of memory", NULL);
  for (size_t i = 0; i < elements; ++i) values[i] = 1;
  tensor.data = values;
  tensor.capacity = elements * sizeof *values;
  return tensor;
}

int main(int argc, char** argv) {
  locution_error error = LOCUTION_ERROR_INIT;
  locution_model* model = NULL;
  locution_context* context = NULL;
  if (argc < 3) stop("usage: any_shape net.onnx SHAPE ...", NULL);
  if (locution_compile_model(argv[1], NULL, 0, NULL, &model, &error) != LOCUTION_OK) stop("cannot compile", &error);
  if (locution_context_create(model, NULL, &context, &error) != LOCUTION_OK) stop("no context", &error);
  size_t count = locution_model_output_count(model);
  locution_tensor* outputs = calloc(count + 1, sizeof *outputs);
  if (outputs == NULL) stop("out of memory", NULL);
  for (int i = 2; i < argc; ++i) {
    locution_tensor input = ones(argv[i]);
    for (size_t k = 0; k < count; ++k) outputs[k] = (locution_tensor)LOCUTION_TENSOR_INIT;
    if (locution_run(context, &input, 1, outputs, count, NULL, &error) != LOCUTION_OK) stop("the run failed", &error);
    for (size_t k = 0; k < count; ++k) {
      printf("%s -> ", argv[i]);
      for (int32_t d = 0; d < outputs[k].rank; ++d) printf("%s%lld", d > 0 ? "x" : "", (long long)outputs[k].dims[d]);
      printf("\n");
    }
    free(input.data);
  }
  free(outputs);
  locution_context_free(context);
  locution_model_free(model);
  return 0;
}
