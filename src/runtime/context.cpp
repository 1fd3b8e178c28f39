#include "runtime/context.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>

#include "runtime/sharing.h"
#include "runtime/validate.h"
#include "support/strings.h"

namespace locution::runtime {
namespace {

using hostops::HostValue;

// Zeroed pages, given to the process as they are touched. Large ones ask for huge pages: kernels walk the arena all the time.
class Arena final : public Storage {
 public:
  static std::shared_ptr<Arena> create(int64_t bytes) {
    // Full vector loads may read 64 bytes past the end.
    size_t size = static_cast<size_t>(bytes) + 64;
    void* pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return nullptr;
#ifdef MADV_HUGEPAGE
    if (size >= size_t{8} << 20) madvise(pages, size, MADV_HUGEPAGE);
#endif
    return std::shared_ptr<Arena>(new Arena(static_cast<std::byte*>(pages), size));
  }
  ~Arena() override { munmap(data_, size_); }
  std::byte* data() override { return data_; }
  size_t size() const override { return size_; }

 private:
  Arena(std::byte* data, size_t size) : data_(data), size_(size) {}
  std::byte* data_;
  size_t size_;
};

std::string dimsText(const std::vector<int64_t>& dims) {
  std::vector<std::string> parts;
  for (int64_t d : dims) parts.push_back(d < 0 ? "?" : std::to_string(d));
  return "[" + join(parts, "x") + "]";
}
std::string typeText(DType dtype, const std::vector<int64_t>& dims) {
  return std::string(dtypeName(dtype)) + dimsText(dims);
}

int64_t slotElements(const Slot& s) {
  int64_t out = 1;
  for (int64_t d : s.dims) out *= d;
  return out;
}

bool fits(const std::vector<int64_t>& wanted, const std::vector<int64_t>& given) {
  return std::equal(wanted.begin(), wanted.end(), given.begin(), given.end(),
                    [](int64_t w, int64_t g) { return w < 0 || w == g; });
}

Tensor copyOf(const Tensor& t) {
  Tensor out(t.dtype(), t.dims());
  if (t.bytes() > 0) std::memcpy(out.raw(), t.raw(), t.bytes());
  return out;
}

struct KernelRun {
  KernelFunction function;
  KernelArgs args;
  std::atomic<int> failure = 0;
};
void runPiece(void* state, int64_t begin, int64_t end) {
  auto* run = static_cast<KernelRun*>(state);
  if (int code = run->function(&run->args, begin, end); code != 0) run->failure.store(code, std::memory_order_relaxed);
}

}  // namespace

struct Context::Impl {
  std::shared_ptr<const Program> program;  // shared: contexts of several callers run one program
  std::shared_ptr<ThreadPool> pool;        // shared: handed in
  const Executable& exe;
  Status broken;  // the arena could not be had
  std::shared_ptr<Arena> arena;

  std::vector<HostValue> inputs, outputs;
  std::vector<bool> isSet;
  std::vector<std::vector<size_t>> inputSlots, outputSlots;
  // What a slot holds where it isn't plain memory: dynamic, strings, sequences. Null where it is.
  std::vector<HostValue> values;
  std::vector<std::byte*> memory;

  // Every kernel's pointer table, one after the other, and where in them a slot's pointer stands.
  std::vector<void*> table;
  std::vector<size_t> tableBegin;
  std::vector<std::vector<size_t>> uses;
  std::vector<bool> parallel;
  std::vector<bool> readsDynamic;
  std::vector<size_t> dynamicSlots;

  // Of regions that ran: contexts of the programs used last.
  struct Nested {
    std::shared_ptr<const Program> program;  // shared: the region's compiler may have let go of it
    std::unique_ptr<Context> context;
    uint64_t lastUse = 0;
  };
  std::vector<std::vector<Nested>> nested;
  uint64_t uses_ = 0;

  bool profiling = false;
  std::vector<InstructionProfile> profile;
  std::vector<HostValue> hostInputs, hostOutputs;

  Impl(std::shared_ptr<const Program> p, std::shared_ptr<ThreadPool> threads)
      : program(std::move(p)),
        pool(threads ? std::move(threads) : ThreadPool::create(1)),
        exe(program->executable()),
        inputs(exe.inputs.size()),
        outputs(exe.outputs.size()),
        isSet(exe.inputs.size()),
        inputSlots(exe.inputs.size()),
        outputSlots(exe.outputs.size()),
        values(exe.slots.size()),
        memory(exe.slots.size()),
        uses(exe.slots.size()),
        nested(exe.regions.size()),
        profile(exe.instructions.size()) {
    arena = Arena::create(exe.arenaBytes);
    if (!arena) broken = Status::error("no memory for the arena of " + std::to_string(exe.arenaBytes) + " bytes");
    for (size_t i = 0; i < exe.slots.size(); ++i) {
      const Slot& s = exe.slots[i];
      if (s.space == SlotSpace::Arena && arena) memory[i] = arena->data() + s.offset;
      if (s.space == SlotSpace::Constant) bindConstant(i);
      if (s.space == SlotSpace::Dynamic) dynamicSlots.push_back(i);
      if (s.space == SlotSpace::Input) inputSlots[static_cast<size_t>(s.index)].push_back(i);
      if (s.space == SlotSpace::Output) outputSlots[static_cast<size_t>(s.index)].push_back(i);
    }
    buildTables();
  }

  const Slot& slot(SlotId id) const { return exe.slots[static_cast<size_t>(id.index)]; }

  void bindConstant(size_t i) {
    const Slot& s = exe.slots[i];
    const Tensor& t = exe.constants[static_cast<size_t>(s.index)];
    if (s.dtype == DType::String) {
      values[i] = t;
      return;
    }
    // Constants are never written; kernels take all their buffers as void*.
    memory[i] = const_cast<std::byte*>(t.raw());
    if (memory[i] != nullptr) memory[i] += s.offset;
  }

  void buildTables() {
    for (const Instruction& instruction : exe.instructions) {
      tableBegin.push_back(table.size());
      const auto* run = std::get_if<RunKernel>(&instruction);
      parallel.push_back(run && isShared(exe.kernels[static_cast<size_t>(run->kernel)]));
      readsDynamic.push_back(run && std::any_of(run->buffers.begin(), run->buffers.end(),
                                                [&](SlotId id) { return slot(id).space == SlotSpace::Dynamic; }));
      if (!run) continue;
      for (SlotId id : run->buffers) {
        uses[static_cast<size_t>(id.index)].push_back(table.size());
        table.push_back(memory[static_cast<size_t>(id.index)]);
      }
    }
  }

  static bool isShared(const KernelInfo& k) { return isWorthSharing(k.parallelExtent, k.flops, k.bytes); }

  void setMemory(size_t i, std::byte* data) {
    if (memory[i] == data) return;
    memory[i] = data;
    for (size_t at : uses[i]) table[at] = data;
  }
  /// All slots that stand for a port.
  void bindPort(const std::vector<size_t>& slots, const HostValue& value) {
    for (size_t i : slots) {
      if (value.isTensor() && exe.slots[i].dtype != DType::String)
        setMemory(i, const_cast<std::byte*>(value.tensor.raw()));  // inputs are only read
      else
        values[i] = value;
    }
  }

  Status checkPort(const Port& port, const Tensor& t, const char* what) const {
    if (t.isValid() && t.dtype() == port.dtype && fits(port.dims, t.dims())) return Status::ok();
    std::string given = t.isValid() ? typeText(t.dtype(), t.dims()) : "nothing";
    return Status::error(std::string(what) + " " + quoted(port.name) + " must be " + typeText(port.dtype, port.dims) +
                         ", but is " + given);
  }

  // An input whose value decided shapes when the model was compiled.
  static Status checkRequired(const Port& port, const Tensor& given) {
    if (port.required.empty()) return Status::ok();
    hostops::ByteReader in(port.required);
    Tensor wanted = hostops::readTensor(in);
    if (!wanted.isValid()) return Status::error("the value required of input " + quoted(port.name) + " makes no sense");
    if (wanted.identical(given)) return Status::ok();
    return Status::error("input " + quoted(port.name) + " decides shapes and was compiled in as " +
                         elementsText(wanted) + "; to run with " + elementsText(given) + ", compile again");
  }
  static std::string elementsText(const Tensor& t) {
    std::vector<std::string> parts;
    for (int64_t i = 0; i < std::min<int64_t>(t.elements(), 8); ++i) {
      std::string number = std::to_string(t.elementAsDouble(i));
      parts.push_back(isFloat(t.dtype()) ? number : std::to_string(t.elementAsInt(i)));
    }
    if (t.elements() > 8) parts.push_back("...");
    return "[" + join(parts, ", ") + "]";
  }

  Status setInput(size_t index, HostValue value) {
    if (index >= exe.inputs.size())
      return Status::error("there is no input " + std::to_string(index) + ": the model has " +
                           std::to_string(exe.inputs.size()));
    const Port& port = exe.inputs[index];
    if (port.kind == ValueKind::Tensor || (port.kind == ValueKind::Optional && value.isTensor())) {
      LOCUTION_RETURN_IF_ERROR(checkPort(port, value.tensor, "input"));
      LOCUTION_RETURN_IF_ERROR(checkRequired(port, value.tensor));
    } else if (port.kind == ValueKind::Sequence && !value.isSequence()) {
      return Status::error("input " + quoted(port.name) + " must be a sequence");
    } else if (value.isSequence() && value.dtype != port.dtype) {
      return Status::error("input " + quoted(port.name) + " must be a sequence of " +
                           std::string(dtypeName(port.dtype)));
    }
    inputs[index] = std::move(value);
    isSet[index] = true;
    bindPort(inputSlots[index], inputs[index]);
    return Status::ok();
  }

  Status bindOutput(size_t index, Tensor tensor) {
    if (index >= exe.outputs.size())
      return Status::error("there is no output " + std::to_string(index) + ": the model has " +
                           std::to_string(exe.outputs.size()));
    const Port& port = exe.outputs[index];
    if (slot(port.slot).space != SlotSpace::Output || port.dtype == DType::String)
      return Status::error("output " + quoted(port.name) + " can't be bound: its memory is the model's");
    if (!tensor.isValid()) {
      outputs[index] = HostValue();
      return Status::ok();
    }
    LOCUTION_RETURN_IF_ERROR(checkPort(port, tensor, "the memory for output"));
    outputs[index] = std::move(tensor);
    bindPort(outputSlots[index], outputs[index]);
    return Status::ok();
  }

  Status begin() {
    LOCUTION_RETURN_IF_ERROR(broken);
    for (size_t i = 0; i < exe.inputs.size(); ++i) {
      if (isSet[i] || exe.inputs[i].kind == ValueKind::Optional) continue;
      return Status::error("input " + quoted(exe.inputs[i].name) + " is not set");
    }
    for (size_t i = 0; i < exe.outputs.size(); ++i) {
      const Port& port = exe.outputs[i];
      if (outputs[i].isTensor() || slot(port.slot).space != SlotSpace::Output) continue;
      if (port.kind == ValueKind::Tensor && port.dtype != DType::String) {
        outputs[i] = Tensor(port.dtype, port.dims);
        bindPort(outputSlots[i], outputs[i]);
      }
    }
    return Status::ok();
  }

  /// Takes the outputs that aren't written in place, and lets go of all other values.
  void end() {
    for (size_t i = 0; i < exe.outputs.size(); ++i) {
      const Slot& s = slot(exe.outputs[i].slot);
      if (s.space == SlotSpace::Output && exe.outputs[i].kind == ValueKind::Tensor && s.dtype != DType::String)
        continue;
      outputs[i] = valueOf(exe.outputs[i].slot);
    }
    for (size_t i : dynamicSlots) values[i] = HostValue();
  }

  HostValue valueOf(SlotId id) const {
    if (!id.isValid()) return {};
    auto i = static_cast<size_t>(id.index);
    const Slot& s = exe.slots[i];
    switch (s.space) {
      case SlotSpace::Arena:
        return Tensor(s.dtype, s.dims, arena, static_cast<size_t>(s.offset));
      case SlotSpace::Constant: {
        const Tensor& t = exe.constants[static_cast<size_t>(s.index)];
        if (s.dtype == DType::String || (t.dtype() == s.dtype && t.dims() == s.dims)) return t;
        return Tensor(s.dtype, s.dims, viewOf(memory[i], slotBytes(s)));
      }
      case SlotSpace::Input:
        return portValue(inputs[static_cast<size_t>(s.index)], s);
      case SlotSpace::Output:
        return values[i].isPresent() ? values[i] : portValue(outputs[static_cast<size_t>(s.index)], s);
      case SlotSpace::Dynamic:
        return values[i];
    }
    return {};
  }
  static HostValue portValue(const HostValue& value, const Slot& s) {
    bool sameDims = !value.isTensor() || value.tensor.dims() == s.dims || !isStaticSlot(s);
    return sameDims ? value : HostValue(value.tensor.reshaped(s.dims));
  }

  struct View final : Storage {
    std::byte* bytes;
    size_t count;
    View(std::byte* b, size_t n) : bytes(b), count(n) {}
    std::byte* data() override { return bytes; }
    size_t size() const override { return count; }
  };
  static std::shared_ptr<Storage> viewOf(std::byte* bytes, int64_t count) {
    return std::make_shared<View>(bytes, static_cast<size_t>(count));
  }

  /// Memory that is written again later must not be seen through a value that lives on.
  bool isReused(const Tensor& t) const {
    if (t.dtype() == DType::String || t.bytes() == 0) return false;
    auto within = [&](const std::byte* begin, size_t size) { return t.raw() >= begin && t.raw() < begin + size; };
    if (within(arena->data(), arena->size())) return true;
    return std::any_of(outputs.begin(), outputs.end(), [&](const HostValue& v) {
      return v.isTensor() && v.tensor.dtype() != DType::String && within(v.tensor.raw(), v.tensor.bytes());
    });
  }

  Status store(SlotId id, HostValue value) {
    auto i = static_cast<size_t>(id.index);
    const Slot& s = exe.slots[i];
    if (value.isTensor()) {
      const Tensor& t = value.tensor;
      if (t.dtype() != s.dtype || (isStaticSlot(s) && s.space != SlotSpace::Dynamic && t.dims() != s.dims))
        return Status::error("gives " + typeText(t.dtype(), t.dims()) + " for " + quoted(s.name) + ", and not " +
                             typeText(s.dtype, s.dims));
      if (memory[i] != nullptr && s.space != SlotSpace::Dynamic) {
        if (t.raw() != memory[i] && t.bytes() > 0) std::memmove(memory[i], t.raw(), t.bytes());
        return Status::ok();
      }
      if (isReused(t)) value.tensor = copyOf(t);
      if (s.space == SlotSpace::Dynamic && t.dtype() != DType::String) setMemory(i, value.tensor.raw());
    }
    for (Tensor& t : value.sequence)
      if (isReused(t)) t = copyOf(t);
    values[i] = std::move(value);
    return Status::ok();
  }

  Status step(size_t i, const RunKernel& x) {
    const KernelInfo& info = exe.kernels[static_cast<size_t>(x.kernel)];
    if (readsDynamic[i])
      for (SlotId id : x.buffers)
        if (slot(id).space == SlotSpace::Dynamic) LOCUTION_RETURN_IF_ERROR(checkDynamic(id));
    KernelRun run{program->kernel(x.kernel), {table.data() + tableBegin[i], &mathTable()}};
    if (parallel[i])
      pool->parallelFor(info.parallelExtent, runPiece, &run);
    else
      runPiece(&run, 0, info.parallelExtent);
    if (int code = run.failure.load(std::memory_order_relaxed); code != 0)
      return Status::error("kernel " + quoted(info.name) + " failed with code " + std::to_string(code));
    return Status::ok();
  }

  // A kernel was compiled for the slot's dims.
  Status checkDynamic(SlotId id) const {
    const HostValue& v = values[static_cast<size_t>(id.index)];
    if (v.isTensor() && v.tensor.dims() == slot(id).dims) return Status::ok();
    return Status::error("value " + quoted(slot(id).name) + " must be " + typeText(slot(id).dtype, slot(id).dims) +
                         ", but is " + (v.isTensor() ? typeText(v.tensor.dtype(), v.tensor.dims()) : "no tensor"));
  }

  Status step(size_t i, const RunHostOp& x) {
    const Program::HostCode& code = program->hostCode(i);
    hostInputs.clear();
    for (SlotId id : x.inputs) hostInputs.push_back(valueOf(id));
    hostops::HostCall call{hostInputs, code.attrs, x.outputs.size(), code.seed};
    Status status = hostops::runHostOp(*code.op, call, hostOutputs);
    for (size_t o = 0; o < x.outputs.size() && status.isOk(); ++o) {
      if (!x.outputs[o].isValid()) continue;
      if (!hostOutputs[o].isPresent())
        status = Status::error("does not give output " + std::to_string(o));
      else
        status = store(x.outputs[o], std::move(hostOutputs[o]));
    }
    // Values are let go here, not at the next call: they may be large.
    hostInputs.clear();
    hostOutputs.clear();
    return status.withContext(x.nodeName.empty() ? x.op : x.nodeName);
  }

  template <typename T>
  static Status checkElements(const std::byte* bytes, int64_t count, const CheckRange& x, const std::string& value) {
    const T* data = reinterpret_cast<const T*>(bytes);
    for (int64_t e = 0; e < count; ++e) {
      if (!std::cmp_less(data[e], x.low) && !std::cmp_greater(data[e], x.high)) continue;
      std::string range = "[" + std::to_string(x.low) + ", " + std::to_string(x.high) + "]";
      return Status::error(x.nodeName + ": element " + std::to_string(e) + " of " + quoted(value) + " is " +
                           std::to_string(data[e]) + ", outside " + range);
    }
    return Status::ok();
  }
  Status step(size_t, const CheckRange& x) const {
    auto i = static_cast<size_t>(x.slot.index);
    const Slot& s = exe.slots[i];
    int64_t count = s.space == SlotSpace::Dynamic ? values[i].tensor.elements() : slotElements(s);
    const std::byte* data = memory[i];
    switch (s.dtype) {
      case DType::I8:
        return checkElements<int8_t>(data, count, x, s.name);
      case DType::I16:
        return checkElements<int16_t>(data, count, x, s.name);
      case DType::I32:
        return checkElements<int32_t>(data, count, x, s.name);
      case DType::I64:
        return checkElements<int64_t>(data, count, x, s.name);
      case DType::U8:
        return checkElements<uint8_t>(data, count, x, s.name);
      case DType::U16:
        return checkElements<uint16_t>(data, count, x, s.name);
      case DType::U32:
        return checkElements<uint32_t>(data, count, x, s.name);
      case DType::U64:
        return checkElements<uint64_t>(data, count, x, s.name);
      default:
        return Status::error(x.nodeName + ": a range check of " + std::string(dtypeName(s.dtype)));
    }
  }

  Status step(size_t, const CopySlot& x) {
    const Slot &from = slot(x.from), &to = slot(x.to);
    auto f = static_cast<size_t>(x.from.index), t = static_cast<size_t>(x.to.index);
    bool plain = from.dtype != DType::String && from.space != SlotSpace::Dynamic && to.space != SlotSpace::Dynamic;
    if (!plain || memory[f] == nullptr || memory[t] == nullptr) {
      if (plain && slotBytes(from) == 0) return Status::ok();
      return store(x.to, valueOf(x.from));
    }
    std::memmove(memory[t], memory[f], static_cast<size_t>(slotBytes(from)));
    return Status::ok();
  }

  Context& contextOf(int32_t region, const std::shared_ptr<const Program>& code) {
    constexpr size_t kMaxContexts = 4;  // of one region: each has an arena
    std::vector<Nested>& list = nested[static_cast<size_t>(region)];
    auto at = std::find_if(list.begin(), list.end(), [&](const Nested& n) { return n.program == code; });
    if (at == list.end()) {
      if (list.size() < kMaxContexts) {
        list.emplace_back();
        at = list.end() - 1;
      } else {
        at = std::min_element(list.begin(), list.end(),
                              [](const Nested& a, const Nested& b) { return a.lastUse < b.lastUse; });
      }
      *at = {code, std::make_unique<Context>(code, pool), 0};
    }
    at->lastUse = ++uses_;
    return *at->context;
  }

  Status step(size_t i, const RunRegion& x) {
    std::vector<HostValue> captured;
    for (SlotId id : x.captured) captured.push_back(valueOf(id));
    auto runOne = [&](size_t which, std::vector<HostValue> values) -> Result<std::vector<HostValue>> {
      if (which >= x.regions.size()) return Status::error("there is no region " + std::to_string(which));
      const int32_t index = x.regions[which];
      const Region& region = exe.regions[static_cast<size_t>(index)];
      for (int32_t c : region.captures) values.push_back(captured[static_cast<size_t>(c)]);
      std::shared_ptr<const Program> code = program->region(index);
      if (!code && !region.compiler) return Status::error(region.open);
      if (!code) {
        LOCUTION_ASSIGN_OR_RETURN(code, region.compiler->compile(values));
      }
      return contextOf(index, code).call(std::move(values));
    };
    ControlCall call{x.kind, program->hostCode(i).attrs, {}, {}};
    for (SlotId id : x.inputs) call.inputs.push_back(valueOf(id));
    for (SlotId id : x.outputs)
      call.outputs.push_back(id.isValid() ? OutputInfo{slot(id).dtype, slot(id).dims}
                                          : OutputInfo{DType::F32, {}, false});
    auto results = runControl(std::move(call), runOne);
    Status status = results.status();
    if (status.isOk() && results->size() != x.outputs.size())
      status = Status::error("gives " + std::to_string(results->size()) + " values instead of " +
                             std::to_string(x.outputs.size()));
    for (size_t o = 0; o < x.outputs.size() && status.isOk(); ++o)
      if (x.outputs[o].isValid()) status = store(x.outputs[o], std::move((*results)[o]));
    return status.withContext(x.nodeName);
  }

  Result<std::vector<HostValue>> call(std::vector<HostValue> given) {
    if (given.size() != exe.inputs.size())
      return Status::error("a region of " + std::to_string(exe.inputs.size()) + " inputs was given " +
                           std::to_string(given.size()));
    for (size_t i = 0; i < given.size(); ++i) {
      const Port& port = exe.inputs[i];
      HostValue& value = given[i];
      if (!value.isPresent() && port.kind == ValueKind::Optional) continue;
      if (value.isTensor() && port.kind == ValueKind::Tensor && value.tensor.elements() == 1 &&
          std::all_of(port.dims.begin(), port.dims.end(), [](int64_t d) { return d == 1; }))
        value.tensor = value.tensor.reshaped(port.dims);
      LOCUTION_RETURN_IF_ERROR(setInput(i, std::move(value)));
    }
    given.clear();
    Status status = runAll(nullptr, false);
    std::vector<HostValue> results;
    for (size_t i = 0; i < exe.outputs.size() && status.isOk(); ++i) results.push_back(std::exchange(outputs[i], {}));
    // Values are let go: they belong to the caller, and may be large.
    for (HostValue& v : inputs) v = {};
    isSet.assign(isSet.size(), false);
    for (size_t i = 0; i < exe.slots.size(); ++i)
      if (exe.slots[i].space != SlotSpace::Constant) values[i] = {};
    if (!status.isOk()) return status;
    return results;
  }

  Status step(size_t i) {
    return std::visit([&](const auto& x) { return step(i, x); }, exe.instructions[i]);
  }
  Status timedStep(size_t i) {
    using Clock = std::chrono::steady_clock;
    Clock::time_point from = Clock::now();
    Status status = step(i);
    profile[i].seconds += std::chrono::duration<double>(Clock::now() - from).count();
    ++profile[i].runs;
    return status;
  }

  /// The tensors an instruction reads and writes, in its order; an invalid one where there is none.
  std::vector<Tensor> buffersOf(size_t i) const {
    std::vector<Tensor> out;
    auto add = [&](SlotId id) {
      HostValue v = valueOf(id);
      out.push_back(v.isTensor() ? v.tensor : Tensor());
    };
    std::visit(
        [&](const auto& x) {
          using T = std::decay_t<decltype(x)>;
          if constexpr (std::is_same_v<T, RunKernel>) {
            for (SlotId id : x.buffers) add(id);
          } else if constexpr (std::is_same_v<T, RunHostOp> || std::is_same_v<T, RunRegion>) {
            for (SlotId id : x.inputs) add(id);
            for (SlotId id : x.outputs) add(id);
          } else if constexpr (std::is_same_v<T, CheckRange>) {
            add(x.slot);
          } else {
            add(x.from);
            add(x.to);
          }
        },
        exe.instructions[i]);
    return out;
  }

  /// `owns`: the pool's threads wait for this run alone; a nested one leaves that to who called it.
  Status runAll(const Observer* observer, bool owns) {
    LOCUTION_RETURN_IF_ERROR(begin());
    struct RunScope {
      ThreadPool& pool;
      bool owns;
      RunScope(ThreadPool& p, bool o) : pool(p), owns(o) {
        if (owns) pool.beginRun();
      }
      ~RunScope() {
        if (owns) pool.endRun();
      }
    } scope(*pool, owns);
    for (size_t i = 0; i < exe.instructions.size(); ++i) {
      Status status = profiling ? timedStep(i) : step(i);
      if (!status.isOk()) return status;
      if (observer) LOCUTION_RETURN_IF_ERROR((*observer)(i, buffersOf(i)));
    }
    end();
    return Status::ok();
  }
};

Context::Context(std::shared_ptr<const Program> program, std::shared_ptr<ThreadPool> pool)
    : impl_(std::make_unique<Impl>(std::move(program), std::move(pool))) {}
Context::~Context() = default;

Status Context::setInput(size_t index, Tensor tensor) { return impl_->setInput(index, HostValue(std::move(tensor))); }
Status Context::setInputValue(size_t index, HostValue value) { return impl_->setInput(index, std::move(value)); }
Status Context::bindOutput(size_t index, Tensor tensor) { return impl_->bindOutput(index, std::move(tensor)); }
const Tensor& Context::output(size_t index) const { return impl_->outputs.at(index).tensor; }
const HostValue& Context::outputValue(size_t index) const { return impl_->outputs.at(index); }

Status Context::run() { return impl_->runAll(nullptr, true); }
Result<std::vector<HostValue>> Context::call(std::vector<HostValue> values) { return impl_->call(std::move(values)); }
Status Context::runObserved(const Observer& observer) { return impl_->runAll(&observer, true); }

void Context::setProfiling(bool on) { impl_->profiling = on; }
const std::vector<InstructionProfile>& Context::profile() const { return impl_->profile; }

}  // namespace locution::runtime
