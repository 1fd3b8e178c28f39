// A thin C++ layer over locution.h: ownership, vectors, exceptions. Header only; C++17.
//
//     locution::cxx::Model model("net.loc");
//     locution::cxx::Context context(model);
//     std::vector<float> x(model.input(0).elements());
//     auto outputs = context.run({locution::cxx::view(x, model.input(0).dims)});
//     const float* y = outputs[0].data<float>();
#pragma once

#include <locution/locution.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace locution::cxx {

class Error : public std::runtime_error {
 public:
  Error(locution_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  locution_status status() const { return status_; }

 private:
  locution_status status_;
};

inline void check(locution_status status, const locution_error& error) {
  if (status != LOCUTION_OK) throw Error(status, error.message);
}

template <typename T>
struct DTypeOf;
#define LOCUTION_CXX_DTYPE(type, value)             \
  template <>                                       \
  struct DTypeOf<type> {                            \
    static constexpr locution_dtype kValue = value; \
  };
LOCUTION_CXX_DTYPE(float, LOCUTION_FLOAT32)
LOCUTION_CXX_DTYPE(double, LOCUTION_FLOAT64)
LOCUTION_CXX_DTYPE(int8_t, LOCUTION_INT8)
LOCUTION_CXX_DTYPE(int16_t, LOCUTION_INT16)
LOCUTION_CXX_DTYPE(int32_t, LOCUTION_INT32)
LOCUTION_CXX_DTYPE(int64_t, LOCUTION_INT64)
LOCUTION_CXX_DTYPE(uint8_t, LOCUTION_UINT8)
LOCUTION_CXX_DTYPE(uint16_t, LOCUTION_UINT16)
LOCUTION_CXX_DTYPE(uint32_t, LOCUTION_UINT32)
LOCUTION_CXX_DTYPE(uint64_t, LOCUTION_UINT64)
LOCUTION_CXX_DTYPE(bool, LOCUTION_BOOL)
#undef LOCUTION_CXX_DTYPE

/// A tensor that owns nothing: an input's or an output's memory.
struct TensorView {
  locution_tensor raw = LOCUTION_TENSOR_INIT;
  std::vector<int64_t> dims() const { return {raw.dims, raw.dims + raw.rank}; }
  size_t elements() const {
    size_t n = 1;
    for (int32_t i = 0; i < raw.rank; ++i) n *= static_cast<size_t>(raw.dims[i]);
    return n;
  }
  /// The elements; throws when they are of another type.
  template <typename T>
  T* data() const {
    if (raw.dtype != DTypeOf<T>::kValue)
      throw Error(LOCUTION_INVALID_ARGUMENT, std::string("the tensor is ") + locution_dtype_name(raw.dtype));
    return static_cast<T*>(raw.data);
  }
};

/// A view of memory of `dims`, which must hold that many elements.
template <typename T>
TensorView view(const T* data, size_t count, const std::vector<int64_t>& dims) {
  TensorView out;
  if (dims.size() > LOCUTION_MAX_RANK) throw Error(LOCUTION_INVALID_ARGUMENT, "too many dims");
  out.raw.dtype = DTypeOf<T>::kValue;
  out.raw.rank = static_cast<int32_t>(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) out.raw.dims[i] = dims[i];
  if (out.elements() != count) throw Error(LOCUTION_INVALID_ARGUMENT, "the dims don't fit the number of elements");
  out.raw.data = const_cast<T*>(data);  // inputs are only read
  out.raw.capacity = count * sizeof(T);
  return out;
}
template <typename T>
TensorView view(const std::vector<T>& data, const std::vector<int64_t>& dims) {
  return view(data.data(), data.size(), dims);
}

struct Port {
  std::string name;
  locution_dtype dtype = LOCUTION_FLOAT32;
  locution_kind kind = LOCUTION_TENSOR;
  std::vector<int64_t> dims;
  size_t elements() const {
    size_t n = 1;
    for (int64_t d : dims) n *= static_cast<size_t>(d);
    return n;
  }
};

class Model {
 public:
  explicit Model(const std::string& path) {
    locution_error error = LOCUTION_ERROR_INIT;
    locution_model* model = nullptr;
    check(locution_model_load(path.c_str(), &model, &error), error);
    model_.reset(model);
  }
  /// Takes over a handle, from locution_compile_model for instance.
  explicit Model(locution_model* model) : model_(model) {}
  locution_model* get() const { return model_.get(); }
  size_t inputCount() const { return locution_model_input_count(get()); }
  size_t outputCount() const { return locution_model_output_count(get()); }
  Port input(size_t i) const { return port(locution_model_input, i); }
  Port output(size_t i) const { return port(locution_model_output, i); }

 private:
  template <typename F>
  Port port(F query, size_t i) const {
    locution_port p = LOCUTION_PORT_INIT;
    if (query(get(), i, &p) != LOCUTION_OK) throw Error(LOCUTION_INVALID_ARGUMENT, "no port " + std::to_string(i));
    return {p.name, p.dtype, p.kind, {p.dims, p.dims + p.rank}};
  }
  struct Free {
    void operator()(locution_model* m) const { locution_model_free(m); }
  };
  std::unique_ptr<locution_model, Free> model_;
};

class ThreadPool {
 public:
  explicit ThreadPool(int32_t threads = 0) {
    locution_error error = LOCUTION_ERROR_INIT;
    locution_thread_pool* pool = nullptr;
    check(locution_thread_pool_create(threads, &pool, &error), error);
    pool_.reset(pool);
  }
  locution_thread_pool* get() const { return pool_.get(); }

 private:
  struct Free {
    void operator()(locution_thread_pool* p) const { locution_thread_pool_free(p); }
  };
  std::unique_ptr<locution_thread_pool, Free> pool_;
};

class Context {
 public:
  explicit Context(const Model& model) { create(model, nullptr); }
  Context(const Model& model, const ThreadPool& pool) { create(model, pool.get()); }

  /// Outputs lie in the context's memory, valid until its next run.
  std::vector<TensorView> run(const std::vector<TensorView>& inputs) {
    std::vector<locution_tensor> in, out(outputs_, LOCUTION_TENSOR_INIT);
    for (const TensorView& t : inputs) in.push_back(t.raw);
    locution_error error = LOCUTION_ERROR_INIT;
    check(locution_run(context_.get(), in.data(), in.size(), out.data(), out.size(), nullptr, &error), error);
    std::vector<TensorView> views(out.size());
    for (size_t i = 0; i < out.size(); ++i) views[i].raw = out[i];
    return views;
  }

 private:
  void create(const Model& model, locution_thread_pool* pool) {
    locution_error error = LOCUTION_ERROR_INIT;
    locution_context* context = nullptr;
    check(locution_context_create(model.get(), pool, &context, &error), error);
    context_.reset(context);
    outputs_ = model.outputCount();
  }
  struct Free {
    void operator()(locution_context* c) const { locution_context_free(c); }
  };
  std::unique_ptr<locution_context, Free> context_;
  size_t outputs_ = 0;
};

}  // namespace locution::cxx
