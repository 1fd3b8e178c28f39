// include/locution/locution.h on top of Program and Context. No exception crosses it, no argument is trusted.
#include "runtime/c_api.h"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "hostops/attrs.h"
#include "runtime/context.h"
#include "support/strings.h"

using locution::DType;
using locution::Result;
using locution::Status;
using locution::Storage;
using locution::Tensor;
using locution::hostops::HostValue;
using locution::runtime::Context;
using locution::runtime::Port;
using locution::runtime::Program;
using locution::runtime::reportError;
using locution::runtime::ThreadPool;

struct locution_model {
  std::shared_ptr<const Program> program;  // shared with its contexts
};
struct locution_thread_pool {
  std::shared_ptr<ThreadPool> pool;  // shared with contexts, which may outlive the handle
};
struct locution_context {
  std::shared_ptr<const Program> program;
  Context context;
  std::vector<Tensor> inputs;                         // as bound by the last run
  std::vector<const void*> bound;                     // the caller's memory of each output, as bound
  std::vector<const void*> handedOut;                 // our memory of each output, as the last run gave it
  std::vector<std::vector<locution_string>> strings;  // the context's own, of string outputs
  locution_context(std::shared_ptr<const Program> p, std::shared_ptr<ThreadPool> pool)
      : program(p),
        context(p, std::move(pool)),
        inputs(p->executable().inputs.size()),
        bound(p->executable().outputs.size()),
        handedOut(p->executable().outputs.size()),
        strings(p->executable().outputs.size()) {}
};

namespace {

static_assert(LOCUTION_FLOAT32 == static_cast<int>(DType::F32) && LOCUTION_STRING == static_cast<int>(DType::String) &&
              LOCUTION_FLOAT8E8M0 == static_cast<int>(DType::F8E8M0) && LOCUTION_UINT2 == static_cast<int>(DType::U2));
constexpr int kDTypes =
#define DTYPE(Name, text, bits, kind) +1
#include "core/dtypes.inc"
#undef DTYPE
    ;

bool isDType(int value) { return value >= 0 && value < kDTypes; }

// Runs `f`, turning what it throws into a status.
template <typename F>
locution_status guarded(locution_error* error, F f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return reportError(error, LOCUTION_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return reportError(error, LOCUTION_INTERNAL, e.what());
  }
}
locution_status invalid(locution_error* error, std::string_view message) {
  return reportError(error, LOCUTION_INVALID_ARGUMENT, message);
}

// Memory that belongs to the caller.
struct Borrowed final : Storage {
  std::byte* bytes;
  size_t count;
  Borrowed(const void* b, size_t n) : bytes(static_cast<std::byte*>(const_cast<void*>(b))), count(n) {}
  std::byte* data() override { return bytes; }
  size_t size() const override { return count; }
};

// The i-th struct of a caller's array, whose structs may be larger than ours.
template <typename T>
T* element(T* first, size_t i) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(first) + i * first->struct_size);
}

bool hasSize(const void* data, size_t size) { return data != nullptr && *static_cast<const size_t*>(data) >= size; }

std::string describe(const Port& port, const char* what) {
  return std::string(what) + " " + locution::quoted(port.name);
}

Result<Tensor> inputTensor(const locution_tensor& t, const Port& port) {
  std::string name = describe(port, "input");
  if (!isDType(t.dtype)) return Status::error(name + ": dtype " + std::to_string(t.dtype) + " is none");
  if (t.rank < 0 || t.rank > LOCUTION_MAX_RANK) return Status::error(name + ": rank " + std::to_string(t.rank));
  std::vector<int64_t> dims(t.dims, t.dims + t.rank);
  auto dtype = static_cast<DType>(t.dtype);
  int64_t elements = locution::hostops::checkedBytes(DType::U8, dims),
          bytes = locution::hostops::checkedBytes(dtype, dims);
  if (elements < 0 || bytes < 0) return Status::error(name + ": a negative or absurdly large dim");
  size_t needed = locution_dtype_bytes(t.dtype, static_cast<size_t>(elements));
  if (t.data == nullptr && needed > 0) return Status::error(name + ": data is NULL");
  if (t.capacity != 0 && t.capacity < needed)
    return Status::error(name + ": " + std::to_string(t.capacity) + " bytes of data, and " + std::to_string(needed) +
                         " are needed");
  if (dtype != DType::String)
    return Tensor(dtype, std::move(dims), std::make_shared<Borrowed>(t.data, static_cast<size_t>(bytes)));
  std::vector<std::string> values;
  const auto* strings = static_cast<const locution_string*>(t.data);
  for (int64_t i = 0; i < elements; ++i) {
    if (strings[i].data == nullptr && strings[i].size > 0) return Status::error(name + ": a string's data is NULL");
    values.emplace_back(strings[i].data == nullptr ? "" : strings[i].data, strings[i].size);
  }
  return Tensor::ofStrings(std::move(dims), std::move(values));
}

Status bindInputs(locution_context& c, const locution_tensor* inputs) {
  const std::vector<Port>& ports = c.program->executable().inputs;
  for (size_t i = 0; i < ports.size(); ++i) {
    const locution_tensor& t = *element(inputs, i);
    // The same memory as last time, as a rule. What must have a certain value is looked at each time.
    const Tensor& last = c.inputs[i];
    bool same = ports[i].required.empty() && last.isValid() && last.dtype() != DType::String && t.data != nullptr &&
                last.raw() == t.data && static_cast<int>(last.dtype()) == t.dtype && last.rank() == t.rank &&
                std::equal(last.dims().begin(), last.dims().end(), t.dims) &&
                (t.capacity == 0 || t.capacity >= last.bytes());
    if (same) continue;
    LOCUTION_ASSIGN_OR_RETURN(Tensor tensor, inputTensor(t, ports[i]));
    LOCUTION_RETURN_IF_ERROR(c.context.setInput(i, tensor));
    c.inputs[i] = std::move(tensor);
  }
  return Status::ok();
}

/// A caller's struct that still holds what we put in it is not memory of the caller's.
void forgetHandedOut(locution_context& c, locution_tensor* outputs) {
  for (size_t i = 0; i < c.handedOut.size(); ++i) {
    locution_tensor& t = *element(outputs, i);
    if (t.data != nullptr && t.data == c.handedOut[i]) {
      t.data = nullptr;
      t.capacity = 0;
    }
    c.handedOut[i] = nullptr;
  }
}

/// Outputs of fixed shape are written in the caller's memory by the run itself.
Status bindOutputs(locution_context& c, const locution_tensor* outputs) {
  const auto& exe = c.program->executable();
  for (size_t i = 0; i < exe.outputs.size(); ++i) {
    const Port& port = exe.outputs[i];
    const locution_tensor& t = *element(outputs, i);
    int64_t bytes = locution::hostops::checkedBytes(port.dtype, port.dims);
    bool direct = exe.slots[static_cast<size_t>(port.slot.index)].space == locution::runtime::SlotSpace::Output &&
                  port.kind == locution::ValueKind::Tensor && port.dtype != DType::String && bytes >= 0;
    if (!direct) continue;
    if (t.data != nullptr && t.capacity < static_cast<size_t>(bytes))
      return Status::error(describe(port, "output") + ": " + std::to_string(t.capacity) + " bytes of memory, and " +
                           std::to_string(bytes) + " are needed");
    if (t.data == c.bound[i]) continue;
    Tensor target;
    if (t.data != nullptr)
      target = Tensor(port.dtype, port.dims, std::make_shared<Borrowed>(t.data, static_cast<size_t>(bytes)));
    LOCUTION_RETURN_IF_ERROR(c.context.bindOutput(i, std::move(target)));
    c.bound[i] = t.data;
  }
  return Status::ok();
}

struct Delivery {
  locution_context& context;
  const locution_allocator* allocator;
  locution_error* error;

  void* allocate(size_t index, size_t bytes) const {
    return allocator->allocate(allocator->user, index, bytes, bytes == 0 ? 1 : 64);
  }
  locution_status tooSmall(const Port& port, size_t capacity, size_t needed) const {
    return invalid(error, describe(port, "output") + ": " + std::to_string(capacity) + " bytes of memory, and " +
                              std::to_string(needed) + " are needed");
  }

  /// Dims, dtype and, where the run did not write them itself, the elements of output `i`.
  locution_status output(size_t i, locution_tensor& out) const {
    const Port& port = context.program->executable().outputs[i];
    const HostValue& value = context.context.outputValue(i);
    if (!value.isTensor())
      return reportError(error, LOCUTION_RUN_FAILED,
                         describe(port, "output") + " is not a tensor: sequences and optionals can't be handed out");
    const Tensor& t = value.tensor;
    if (t.rank() > LOCUTION_MAX_RANK)
      return reportError(error, LOCUTION_RUN_FAILED,
                         describe(port, "output") + " has rank " + std::to_string(t.rank()));
    out.dtype = static_cast<locution_dtype>(t.dtype());
    out.rank = static_cast<int32_t>(t.rank());
    std::copy(t.dims().begin(), t.dims().end(), out.dims);
    if (t.dtype() == DType::String) return strings(i, port, t, out);
    if (out.data == nullptr && allocator == nullptr) {
      out.data = const_cast<std::byte*>(t.raw());
      out.capacity = t.bytes();
      context.handedOut[i] = out.data;
      return LOCUTION_OK;
    }
    if (out.data == nullptr) {
      out.data = allocate(i, t.bytes());
      if (out.data == nullptr && t.bytes() > 0)
        return reportError(error, LOCUTION_OUT_OF_MEMORY, "the allocator gave no memory");
      out.capacity = t.bytes();
    }
    if (out.capacity < t.bytes()) return tooSmall(port, out.capacity, t.bytes());
    if (t.bytes() > 0 && out.data != t.raw()) std::memcpy(out.data, t.raw(), t.bytes());
    return LOCUTION_OK;
  }

  locution_status strings(size_t i, const Port& port, const Tensor& t, locution_tensor& out) const {
    size_t head = t.strings().size() * sizeof(locution_string), bytes = head;
    for (const std::string& s : t.strings()) bytes += s.size();
    if (out.data == nullptr && allocator == nullptr) {
      std::vector<locution_string>& own = context.strings[i];
      own.clear();
      for (const std::string& s : t.strings()) own.push_back({s.data(), s.size()});
      out.data = own.data();
      out.capacity = head;
      context.handedOut[i] = out.data;
      return LOCUTION_OK;
    }
    if (out.data == nullptr) {
      out.data = allocate(i, bytes);
      if (out.data == nullptr && bytes > 0)
        return reportError(error, LOCUTION_OUT_OF_MEMORY, "the allocator gave no memory");
      out.capacity = bytes;
    }
    if (out.capacity < bytes) return tooSmall(port, out.capacity, bytes);
    char* at = static_cast<char*>(out.data) + head;
    for (size_t k = 0; k < t.strings().size(); ++k) {
      const std::string& s = t.strings()[k];
      locution_string entry = {at, s.size()};
      std::memcpy(static_cast<char*>(out.data) + k * sizeof entry, &entry, sizeof entry);
      if (!s.empty()) std::memcpy(at, s.data(), s.size());
      at += s.size();
    }
    return LOCUTION_OK;
  }
};

locution_status portInfo(const std::vector<Port>& ports, size_t index, locution_port* out) {
  if (!hasSize(out, sizeof(locution_port)) || index >= ports.size()) return LOCUTION_INVALID_ARGUMENT;
  const Port& port = ports[index];
  out->name = port.name.c_str();
  out->dtype = static_cast<locution_dtype>(port.dtype);
  out->kind = static_cast<locution_kind>(port.kind);
  out->rank = static_cast<int32_t>(port.dims.size());
  out->dims = port.dims.data();
  return LOCUTION_OK;
}

int64_t findPort(const std::vector<Port>& ports, const char* name) {
  for (size_t i = 0; name != nullptr && i < ports.size(); ++i)
    if (ports[i].name == name) return static_cast<int64_t>(i);
  return -1;
}

int32_t availableCpus() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

namespace locution::runtime {

locution_model* makeModelHandle(std::shared_ptr<const Program> program) {
  return new locution_model{std::move(program)};
}

locution_status reportError(locution_error* error, locution_status status, std::string_view message) {
  if (error == nullptr || error->struct_size < offsetof(locution_error, message) + 1) return status;
  error->status = status;
  size_t room = std::min(error->struct_size - offsetof(locution_error, message), sizeof error->message) - 1;
  size_t size = std::min(room, message.size());
  std::memcpy(error->message, message.data(), size);
  error->message[size] = '\0';
  return status;
}

}  // namespace locution::runtime

#define LOCUTION_TEXT_INNER(x) #x
#define LOCUTION_TEXT(x) LOCUTION_TEXT_INNER(x)

extern "C" {

const char* locution_version(void) {
  return LOCUTION_TEXT(LOCUTION_VERSION_MAJOR) "." LOCUTION_TEXT(LOCUTION_VERSION_MINOR) "." LOCUTION_TEXT(
      LOCUTION_VERSION_PATCH);
}

const char* locution_dtype_name(locution_dtype dtype) {
  // Names in the table are literals, hence terminated.
  return isDType(dtype) ? locution::dtypeName(static_cast<DType>(dtype)).data() : nullptr;
}

size_t locution_dtype_bytes(locution_dtype dtype, size_t count) {
  if (!isDType(dtype)) return 0;
  if (dtype == LOCUTION_STRING) return count * sizeof(locution_string);
  return static_cast<size_t>(locution::dtypeBytes(static_cast<DType>(dtype), static_cast<int64_t>(count)));
}

locution_status locution_model_load(const char* path, locution_model** model, locution_error* error) {
  if (path == nullptr || model == nullptr) return invalid(error, "path or model is NULL");
  *model = nullptr;
  return guarded(error, [&] {
    auto program = Program::loadFile(path);
    if (!program.isOk()) return reportError(error, LOCUTION_CANNOT_LOAD, program.status().message());
    *model = locution::runtime::makeModelHandle(std::move(*program));
    return LOCUTION_OK;
  });
}

locution_status locution_model_load_memory(const void* data, size_t size, int borrow, locution_model** model,
                                           locution_error* error) {
  if (data == nullptr || model == nullptr) return invalid(error, "data or model is NULL");
  *model = nullptr;
  return guarded(error, [&] {
    std::shared_ptr<Storage> bytes;
    if (borrow != 0 && reinterpret_cast<uintptr_t>(data) % 64 == 0) {
      bytes = std::make_shared<Borrowed>(data, size);
    } else {
      // A view of exactly `size` bytes: an allocation may be larger.
      Tensor copy(DType::U8, {static_cast<int64_t>(size)});
      if (size > 0) std::memcpy(copy.raw(), data, size);
      struct Owned final : Storage {
        Tensor tensor;
        std::byte* data() override { return tensor.raw(); }
        size_t size() const override { return tensor.bytes(); }
      };
      auto owned = std::make_shared<Owned>();
      owned->tensor = std::move(copy);
      bytes = std::move(owned);
    }
    auto program = Program::loadBytes(std::move(bytes), "the model in memory");
    if (!program.isOk()) return reportError(error, LOCUTION_CANNOT_LOAD, program.status().message());
    *model = locution::runtime::makeModelHandle(std::move(*program));
    return LOCUTION_OK;
  });
}

void locution_model_free(locution_model* model) { delete model; }

locution_status locution_model_get_info(const locution_model* model, locution_model_info* info) {
  if (model == nullptr || !hasSize(info, sizeof(locution_model_info))) return LOCUTION_INVALID_ARGUMENT;
  const auto& exe = model->program->executable();
  info->name = exe.modelName.c_str();
  info->compiler_version = exe.compilerVersion.c_str();
  info->triple = exe.target.triple.c_str();
  info->cpu = exe.target.cpu.c_str();
  info->arena_bytes = exe.arenaBytes;
  info->weight_bytes = exe.weightBytes();
  info->flops = exe.flops;
  return LOCUTION_OK;
}

size_t locution_model_input_count(const locution_model* model) {
  return model ? model->program->executable().inputs.size() : 0;
}
size_t locution_model_output_count(const locution_model* model) {
  return model ? model->program->executable().outputs.size() : 0;
}
locution_status locution_model_input(const locution_model* model, size_t index, locution_port* port) {
  return model ? portInfo(model->program->executable().inputs, index, port) : LOCUTION_INVALID_ARGUMENT;
}
locution_status locution_model_output(const locution_model* model, size_t index, locution_port* port) {
  return model ? portInfo(model->program->executable().outputs, index, port) : LOCUTION_INVALID_ARGUMENT;
}
int64_t locution_model_find_input(const locution_model* model, const char* name) {
  return model ? findPort(model->program->executable().inputs, name) : -1;
}
int64_t locution_model_find_output(const locution_model* model, const char* name) {
  return model ? findPort(model->program->executable().outputs, name) : -1;
}

size_t locution_model_metadata_count(const locution_model* model) {
  return model ? model->program->executable().metadata.size() : 0;
}
locution_status locution_model_metadata(const locution_model* model, size_t index, const char** key,
                                        const char** value) {
  if (model == nullptr || key == nullptr || value == nullptr || index >= model->program->executable().metadata.size())
    return LOCUTION_INVALID_ARGUMENT;
  auto at = std::next(model->program->executable().metadata.begin(), static_cast<std::ptrdiff_t>(index));
  *key = at->first.c_str();
  *value = at->second.c_str();
  return LOCUTION_OK;
}

locution_status locution_thread_pool_create(int32_t threads, locution_thread_pool** pool, locution_error* error) {
  if (pool == nullptr) return invalid(error, "pool is NULL");
  *pool = nullptr;
  if (threads < 0 || threads > 1024) return invalid(error, std::to_string(threads) + " threads");
  return guarded(error, [&] {
    *pool = new locution_thread_pool{ThreadPool::create(threads == 0 ? availableCpus() : threads)};
    return LOCUTION_OK;
  });
}
void locution_thread_pool_free(locution_thread_pool* pool) { delete pool; }

locution_status locution_context_create(const locution_model* model, locution_thread_pool* pool,
                                        locution_context** context, locution_error* error) {
  if (model == nullptr || context == nullptr) return invalid(error, "model or context is NULL");
  *context = nullptr;
  return guarded(error, [&] {
    *context = new locution_context(model->program, pool ? pool->pool : nullptr);
    return LOCUTION_OK;
  });
}
void locution_context_free(locution_context* context) { delete context; }

locution_status locution_run(locution_context* context, const locution_tensor* inputs, size_t input_count,
                             locution_tensor* outputs, size_t output_count, const locution_allocator* allocator,
                             locution_error* error) {
  if (context == nullptr) return invalid(error, "context is NULL");
  const auto& exe = context->program->executable();
  if (input_count != exe.inputs.size() || output_count != exe.outputs.size())
    return invalid(error, "the model has " + std::to_string(exe.inputs.size()) + " inputs and " +
                              std::to_string(exe.outputs.size()) + " outputs, not " + std::to_string(input_count) +
                              " and " + std::to_string(output_count));
  if ((input_count > 0 && !hasSize(inputs, sizeof(locution_tensor))) ||
      (output_count > 0 && !hasSize(outputs, sizeof(locution_tensor))))
    return invalid(error, "inputs or outputs are NULL or without their struct_size");
  if (allocator != nullptr && (!hasSize(allocator, sizeof(locution_allocator)) || allocator->allocate == nullptr))
    return invalid(error, "the allocator is without its struct_size or function");
  return guarded(error, [&]() -> locution_status {
    if (Status s = bindInputs(*context, inputs); !s.isOk()) return invalid(error, s.message());
    forgetHandedOut(*context, outputs);
    if (Status s = bindOutputs(*context, outputs); !s.isOk()) return invalid(error, s.message());
    if (Status s = context->context.run(); !s.isOk()) return reportError(error, LOCUTION_RUN_FAILED, s.message());
    Delivery delivery{*context, allocator, error};
    for (size_t i = 0; i < output_count; ++i)
      if (locution_status s = delivery.output(i, *element(outputs, i)); s != LOCUTION_OK) return s;
    return LOCUTION_OK;
  });
}

}  // extern "C"
