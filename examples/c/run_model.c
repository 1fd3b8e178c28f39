/* Runs a compiled model from C.
 *     run_model net.loc [FILE ...]
 * Each FILE holds the raw bytes of one input, in the model's order (float32 values, for most networks); inputs without a
 * file are zeros. Prints the first values of each output, and where the largest one is: the class, for a classifier. */
#include <locution/locution.h>
#include <stdio.h>
#include <stdlib.h>

static void stop(const char* what, const locution_error* error) {
  fprintf(stderr, "run_model: %s%s%s\n", what, error ? ": " : "", error ? error->message : "");
  exit(1);
}

/* An input with memory of its own, filled from a file or with zeros. */
static locution_tensor make_input(const locution_port* port, const char* path) {
  locution_tensor tensor = LOCUTION_TENSOR_INIT;
  size_t elements = 1;
  if (port->kind != LOCUTION_TENSOR || port->dtype == LOCUTION_STRING || port->rank > LOCUTION_MAX_RANK)
    stop("this example feeds tensors of numbers only", NULL);
  tensor.dtype = port->dtype;
  tensor.rank = port->rank;
  for (int32_t i = 0; i < port->rank; ++i) {
    tensor.dims[i] = port->dims[i];
    elements *= (size_t)port->dims[i];
  }
  tensor.capacity = locution_dtype_bytes(port->dtype, elements);
  tensor.data = calloc(tensor.capacity > 0 ? tensor.capacity : 1, 1);
  if (tensor.data == NULL) stop("out of memory", NULL);
  if (path != NULL) {
    FILE* file = fopen(path, "rb");
    if (file == NULL) stop("cannot open an input file", NULL);
    if (fread(tensor.data, 1, tensor.capacity, file) != tensor.capacity) stop("an input file is too short", NULL);
    fclose(file);
  }
  return tensor;
}

static void print_output(const locution_port* port, const locution_tensor* tensor) {
  size_t elements = 1, best = 0;
  printf("%s: %s[", port->name, locution_dtype_name(tensor->dtype));
  for (int32_t i = 0; i < tensor->rank; ++i) {
    printf("%s%lld", i > 0 ? "x" : "", (long long)tensor->dims[i]);
    elements *= (size_t)tensor->dims[i];
  }
  printf("]");
  if (tensor->dtype == LOCUTION_FLOAT32 && elements > 0) {
    const float* values = tensor->data;
    for (size_t i = 0; i < elements; ++i) {
      if (i < 8) printf(" %g", values[i]);
      if (values[i] > values[best]) best = i;
    }
    printf("%s\n  largest: %g at %zu", elements > 8 ? " ..." : "", values[best], best);
  } else if (tensor->dtype == LOCUTION_INT64) {
    const int64_t* values = tensor->data;
    for (size_t i = 0; i < elements && i < 8; ++i) printf(" %lld", (long long)values[i]);
  }
  printf("\n");
}

int main(int argc, char** argv) {
  locution_error error = LOCUTION_ERROR_INIT;
  locution_model* model = NULL;
  locution_thread_pool* pool = NULL;
  locution_context* context = NULL;
  if (argc < 2) stop("usage: run_model net.loc [FILE ...]", NULL);
  if (locution_model_load(argv[1], &model, &error) != LOCUTION_OK) stop("cannot load the model", &error);
  if (locution_thread_pool_create(0, &pool, &error) != LOCUTION_OK) stop("no thread pool", &error);
  if (locution_context_create(model, pool, &context, &error) != LOCUTION_OK) stop("no context", &error);

  size_t input_count = locution_model_input_count(model), output_count = locution_model_output_count(model);
  locution_tensor *inputs = calloc(input_count + 1, sizeof *inputs),
                  *outputs = calloc(output_count + 1, sizeof *outputs);
  if (inputs == NULL || outputs == NULL) stop("out of memory", NULL);
  locution_port port = LOCUTION_PORT_INIT;
  for (size_t i = 0; i < input_count; ++i) {
    locution_model_input(model, i, &port);
    inputs[i] = make_input(&port, i + 2 < (size_t)argc ? argv[i + 2] : NULL);
  }
  /* No memory of ours: the outputs then lie in the context until its next run. */
  for (size_t i = 0; i < output_count; ++i) outputs[i] = (locution_tensor)LOCUTION_TENSOR_INIT;

  if (locution_run(context, inputs, input_count, outputs, output_count, NULL, &error) != LOCUTION_OK)
    stop("the run failed", &error);
  for (size_t i = 0; i < output_count; ++i) {
    locution_model_output(model, i, &port);
    print_output(&port, &outputs[i]);
  }

  for (size_t i = 0; i < input_count; ++i) free(inputs[i].data);
  free(inputs);
  free(outputs);
  locution_context_free(context);
  locution_thread_pool_free(pool);
  locution_model_free(model);
  return 0;
}
