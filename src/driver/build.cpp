#include "driver/build.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>

#include "driver/kernels.h"
#include "loop/passes.h"
#include "loop/traffic.h"
#include "passes/memory_plan.h"
#include "schedule/stages.h"

namespace locution::driver {

using runtime::Executable;
using runtime::SlotId;
using runtime::SlotSpace;

namespace {

using Clock = std::chrono::steady_clock;

class Builder {
 public:
  Builder(Lowered lowered, const BuildInputs& in)
      : l_(std::move(lowered)), in_(in), exe_(std::make_shared<Executable>()) {}

  Result<std::shared_ptr<Executable>> run() {
    exe_->target = in_.compiler->target();
    LOCUTION_RETURN_IF_ERROR(timed("schedule", [&] { return scheduleAll(); }));
    insertPackSteps();
    LOCUTION_RETURN_IF_ERROR(timed("code", [&] { return compileAll(); }));
    LOCUTION_RETURN_IF_ERROR(timed("constants", [&] { return packConstants(); }));
    planArena();
    writePorts();
    for (RegionCode& region : l_.regions) exe_->regions.push_back(std::move(region));
    writeInstructions();
    return exe_;
  }

 private:
  // A kernel that runs, with what it was scheduled to.
  struct Call {
    uint64_t key = 0;
    size_t code = 0;               ///< index into codes_
    std::vector<int64_t> buffers;  ///< of its params; -1 - k: packed constant k
  };
  struct PackedConstant {
    BufferIndex source;
    loop::Computation computation;
    Tensor tensor;
    int32_t index = -1;  ///< in exe_->constants
  };

  template <typename F>
  Status timed(const char* what, F&& f) {
    auto start = Clock::now();
    Status s = f();
    if (in_.times) in_.times->push_back({what, std::chrono::duration<double>(Clock::now() - start).count()});
    return s;
  }

  const ScheduledKernel& scheduled(const KernelStep& k) const { return scheduled_.at(kernelKey(k.computation)); }

  Status scheduleKernels(const std::vector<const loop::Computation*>& todo) {
    std::vector<std::pair<uint64_t, const loop::Computation*>> fresh;
    for (const loop::Computation* c : todo) {
      uint64_t key = kernelKey(*c);
      if (!scheduled_.count(key) && std::none_of(fresh.begin(), fresh.end(), [&](auto& f) { return f.first == key; }))
        fresh.emplace_back(key, c);
    }
    std::vector<ScheduledKernel> results(fresh.size());
    LOCUTION_RETURN_IF_ERROR(parallelTasks(fresh.size(), in_.jobs, [&](size_t i) -> Status {
      CheckScope scope("scheduling kernel " + fresh[i].second->name);
      LOCUTION_ASSIGN_OR_RETURN(results[i], scheduleKernel(*fresh[i].second, *in_.scheduler, in_.compiler->target()));
      return Status::ok();
    }));
    for (size_t i = 0; i < fresh.size(); ++i) scheduled_.emplace(fresh[i].first, std::move(results[i]));
    return Status::ok();
  }

  Status scheduleAll() {
    if (in_.progress) in_.progress("scheduling", 0.3);
    std::vector<const loop::Computation*> todo;
    for (const Step& s : l_.steps)
      if (const auto* k = std::get_if<KernelStep>(&s)) todo.push_back(&k->computation);
    LOCUTION_RETURN_IF_ERROR(scheduleKernels(todo));
    // Copies of activations are kernels too.
    std::vector<const loop::Computation*> packs;
    for (const Step& s : l_.steps)
      if (const auto* k = std::get_if<KernelStep>(&s)) {
        const ScheduledKernel& sk = scheduled(*k);
        for (size_t p = 0; p < sk.packSources.size(); ++p)
          if (!l_.buffers[k->inputs[sk.packSources[p]]].constant.isValid()) packs.push_back(&sk.packComputations[p]);
      }
    return scheduleKernels(packs);
  }

  // The steps as they will run: packing of activations before the kernels that need it.
  void insertPackSteps() {
    std::vector<Step> steps;
    for (Step& s : l_.steps) {
      auto* k = std::get_if<KernelStep>(&s);
      if (!k) {
        calls_.push_back({});
        steps.push_back(std::move(s));
        continue;
      }
      const ScheduledKernel& sk = scheduled(*k);
      std::vector<int64_t> packed;
      for (size_t p = 0; p < sk.packSources.size(); ++p) {
        BufferIndex source = k->inputs[sk.packSources[p]];
        const loop::Computation& pack = sk.packComputations[p];
        if (l_.buffers[source].constant.isValid()) {
          packed.push_back(-1 - static_cast<int64_t>(packedConstant(source, pack)));
          continue;
        }
        StepBuffer b;
        b.name = l_.buffers[source].name + ".packed";
        b.dtype = pack.outputs[0]->element.dtype;
        b.dims = loop::extents(*pack.outputs[0]);
        l_.buffers.push_back(std::move(b));
        BufferIndex target = l_.buffers.size() - 1;
        packed.push_back(static_cast<int64_t>(target));
        KernelStep copy{pack, {source}, {target}, "Pack"};
        copy.computation.name = k->computation.name + ".pack";
        Call call{kernelKey(pack), 0, {}};
        for (const Param& q : scheduled_.at(call.key).params)
          call.buffers.push_back(static_cast<int64_t>(q.kind == Param::Kind::Input ? source : target));
        calls_.push_back(std::move(call));
        steps.push_back(std::move(copy));
      }
      Call call{kernelKey(k->computation), 0, {}};
      for (const Param& q : sk.params)
        call.buffers.push_back(q.kind == Param::Kind::Packed  ? packed[q.index]
                               : q.kind == Param::Kind::Input ? static_cast<int64_t>(k->inputs[q.index])
                                                              : static_cast<int64_t>(k->outputs[q.index]));
      calls_.push_back(std::move(call));
      steps.push_back(std::move(s));
    }
    l_.steps = std::move(steps);
  }

  // Equal copies of one constant are made once.
  size_t packedConstant(BufferIndex source, const loop::Computation& pack) {
    auto [it, added] = packIndex_.emplace(std::make_pair(source, kernelKey(pack)), packs_.size());
    if (added) packs_.push_back({source, pack, {}, -1});
    return it->second;
  }

  Status compileAll() {
    // Different kernels may have the same loops: code is shared by the function's hash.
    std::vector<const loop::Function*> functions;
    std::map<uint64_t, size_t> byHash;
    for (Call& call : calls_) {
      if (call.key == 0) continue;
      const loop::Function& f = scheduled_.at(call.key).function;
      auto [it, added] = byHash.emplace(loop::hash(f), functions.size());
      if (added) functions.push_back(&f);
      call.code = it->second;
    }
    codes_.resize(functions.size());
    std::atomic<size_t> done{0};
    LOCUTION_RETURN_IF_ERROR(parallelTasks(functions.size(), in_.jobs, [&](size_t i) -> Status {
      CheckScope scope("compiling kernel " + functions[i]->name);
      auto code = in_.compiler->compile(*functions[i]);
      if (!code.isOk()) return code.status().withContext("kernel " + functions[i]->name);
      codes_[i] = std::move(*code);
      size_t finished = ++done;
      if (in_.progress)
        in_.progress("compiling kernels",
                     0.35 + 0.5 * static_cast<double>(finished) / static_cast<double>(functions.size()));
      return Status::ok();
    }));
    offsets_.resize(codes_.size());
    for (size_t i = 0; i < codes_.size(); ++i) {
      exe_->code.resize((exe_->code.size() + 63) / 64 * 64);
      offsets_[i] = static_cast<int64_t>(exe_->code.size());
      exe_->code.insert(exe_->code.end(), codes_[i].bytes.begin(), codes_[i].bytes.end());
    }
    return Status::ok();
  }

  Status packConstants() {
    if (in_.progress) in_.progress("packing weights", 0.9);
    // By source, so that an original is let go once its last copy is made.
    std::map<BufferIndex, std::vector<size_t>> bySource;
    for (size_t i = 0; i < packs_.size(); ++i) bySource[packs_[i].source].push_back(i);
    std::vector<BufferIndex> sources;
    for (auto& [source, list] : bySource) sources.push_back(source);
    std::vector<bool> keep(l_.buffers.size(), false);
    for (const Call& call : calls_)
      for (int64_t b : call.buffers)
        if (b >= 0) keep[static_cast<size_t>(b)] = true;
    for (const Step& s : l_.steps) {
      for (const auto& o : operandsOf(s))
        if (o.buffer >= 0) keep[static_cast<size_t>(o.buffer)] = true;
      if (const auto* c = std::get_if<CopyStep>(&s)) keep[c->from] = true;
    }
    // The largest first: no thread is left with one at the end.
    std::stable_sort(sources.begin(), sources.end(),
                     [&](BufferIndex a, BufferIndex b) { return l_.buffers[a].bytes() > l_.buffers[b].bytes(); });
    LOCUTION_RETURN_IF_ERROR(parallelTasks(sources.size(), in_.jobs, [&](size_t k) -> Status {
      StepBuffer& source = l_.buffers[sources[k]];
      for (size_t i : bySource.at(sources[k])) {
        PackedConstant& p = packs_[i];
        Tensor input = source.constant.reshaped(loop::extents(*p.computation.inputs[0]));
        LOCUTION_ASSIGN_OR_RETURN(std::vector<Tensor> made, in_.evaluator->evaluate(p.computation, {input}));
        p.tensor = std::move(made[0]);
      }
      if (!keep[sources[k]]) source.constant = Tensor();
      return Status::ok();
    }));
    constantIndex_.assign(l_.buffers.size(), -1);
    for (PackedConstant& p : packs_) {
      p.index = static_cast<int32_t>(exe_->constants.size());
      exe_->constants.push_back(std::move(p.tensor));
    }
    for (size_t b = 0; b < l_.buffers.size(); ++b) {
      Tensor& t = l_.buffers[b].constant;
      if (!t.isValid() || !keep[b]) continue;
      if (t.dtype() != DType::String && reinterpret_cast<uintptr_t>(t.raw()) % 64 != 0 && t.bytes() > 0) {
        Tensor aligned(t.dtype(), t.dims());
        std::memcpy(aligned.raw(), t.raw(), t.bytes());
        t = std::move(aligned);
      }
      constantIndex_[b] = static_cast<int32_t>(exe_->constants.size());
      exe_->constants.push_back(std::move(t));
    }
    return Status::ok();
  }

  bool inArena(size_t b) const {
    const StepBuffer& s = l_.buffers[b];
    return s.input < 0 && s.output < 0 && !s.dynamic && constantIndex_[b] < 0;
  }

  void planArena() {
    std::vector<passes::Lifetime> lives(l_.buffers.size());
    std::vector<bool> used(l_.buffers.size(), false);
    auto touch = [&](size_t b, size_t step) {
      auto at = static_cast<int32_t>(step);
      if (!used[b]) lives[b].first = at;
      used[b] = true;
      lives[b].last = std::max(lives[b].last, at);
    };
    for (size_t i = 0; i < l_.steps.size(); ++i) {
      for (int64_t b : calls_[i].buffers)
        if (b >= 0) touch(static_cast<size_t>(b), i);
      for (const auto& o : operandsOf(l_.steps[i]))
        if (o.buffer >= 0) touch(static_cast<size_t>(o.buffer), i);
      if (const auto* c = std::get_if<CheckStep>(&l_.steps[i])) touch(c->buffer, i);
      if (const auto* c = std::get_if<CopyStep>(&l_.steps[i])) touch(c->from, i);
    }
    std::vector<passes::Lifetime> planned;
    std::vector<size_t> which;
    std::vector<int32_t> place(l_.buffers.size(), -1);
    for (size_t b = 0; b < lives.size(); ++b) {
      if (!used[b] || !inArena(b)) continue;
      lives[b].bytes = l_.buffers[b].bytes();
      place[b] = static_cast<int32_t>(planned.size());
      planned.push_back(lives[b]);
      which.push_back(b);
    }
    for (size_t i = 0; i < l_.steps.size(); ++i) {
      const auto* k = std::get_if<KernelStep>(&l_.steps[i]);
      if (!k || k->outputs.size() != 1 || place[k->outputs[0]] < 0) continue;
      passes::Lifetime& out = planned[static_cast<size_t>(place[k->outputs[0]])];
      for (size_t j = 0; j < k->inputs.size() && out.inPlaceOf < 0; ++j) {
        size_t b = k->inputs[j];
        // The same buffer under two shapes is read in two ways.
        bool once = std::count(k->inputs.begin(), k->inputs.end(), b) == 1;
        if (once && place[b] >= 0 && lives[b].last == static_cast<int32_t>(i) && out.first == static_cast<int32_t>(i) &&
            lives[b].bytes == out.bytes && schedule::mayWriteOver(k->computation, k->computation.inputs[j]))
          out.inPlaceOf = place[b];
      }
    }
    passes::MemoryPlan plan = passes::planMemory(planned);
    arenaOffset_.assign(l_.buffers.size(), 0);
    for (size_t i = 0; i < which.size(); ++i) arenaOffset_[which[i]] = plan.offsets[i];
    exe_->arenaBytes = plan.arenaBytes;
  }

  SlotId slot(size_t b, const std::vector<int64_t>& dims) {
    auto [it, added] = slots_.emplace(std::make_pair(b, dims), SlotId{static_cast<int32_t>(exe_->slots.size())});
    if (!added) return it->second;
    const StepBuffer& s = l_.buffers[b];
    runtime::Slot out;
    out.dtype = s.dtype;
    out.dims = dims;
    out.name = s.name;
    if (s.input >= 0) {
      out.space = SlotSpace::Input;
      out.index = s.input;
    } else if (s.dynamic) {
      out.space = SlotSpace::Dynamic;
    } else if (constantIndex_[b] >= 0) {
      out.space = SlotSpace::Constant;
      out.index = constantIndex_[b];
    } else if (s.output >= 0) {
      out.space = SlotSpace::Output;
      out.index = s.output;
    } else {
      out.offset = arenaOffset_[b];
    }
    exe_->slots.push_back(std::move(out));
    return it->second;
  }
  SlotId slot(size_t b) { return slot(b, l_.buffers[b].dims); }

  SlotId packedSlot(size_t k) {
    auto [it, added] = packedSlots_.emplace(k, SlotId{static_cast<int32_t>(exe_->slots.size())});
    if (added) {
      const Tensor& t = exe_->constants[static_cast<size_t>(packs_[k].index)];
      exe_->slots.push_back({t.dtype(), t.dims(), SlotSpace::Constant, packs_[k].index, 0,
                             l_.buffers[packs_[k].source].name + ".packed"});
    }
    return it->second;
  }

  void writePorts() {
    for (const PortInfo& p : l_.inputs)
      exe_->inputs.push_back({p.name, p.dtype, p.dims, slot(p.buffer, p.dims), p.kind});
    for (size_t i = 0; i < l_.outputs.size(); ++i) {
      const PortInfo& p = l_.outputs[i];
      SlotId id;
      if (l_.buffers[p.buffer].dynamic) {
        id = slot(p.buffer);
      } else {
        id = SlotId{static_cast<int32_t>(exe_->slots.size())};
        exe_->slots.push_back({p.dtype, p.dims, SlotSpace::Output, static_cast<int32_t>(i), 0, p.name});
      }
      exe_->outputs.push_back({p.name, p.dtype, p.dims, id, p.kind});
    }
  }

  double bytesMoved(const KernelStep& k, const Param& param, int64_t b) const {
    if (b < 0)
      return static_cast<double>(
          exe_->constants[static_cast<size_t>(packs_[static_cast<size_t>(-1 - b)].index)].bytes());
    const auto whole = static_cast<double>(l_.buffers[static_cast<size_t>(b)].bytes());
    if (param.kind != Param::Kind::Input) return whole;
    const loop::Buffer& input = *k.computation.inputs[param.index];
    double elements = 1;
    for (int64_t d : loop::extents(input)) elements *= static_cast<double>(d);
    return elements > 0 ? whole * (loop::countReads(k.computation, input) / elements) : 0;
  }

  void writeInstructions() {
    for (size_t i = 0; i < l_.steps.size(); ++i) {
      if (const auto* k = std::get_if<KernelStep>(&l_.steps[i])) {
        const Call& call = calls_[i];
        const ScheduledKernel& sk = scheduled_.at(call.key);
        runtime::KernelInfo info;
        info.name = k->computation.name;
        info.op = k->op;
        info.sentence = sk.sentence;
        info.ops = k->ops;
        info.codeOffset = offsets_[call.code];
        info.codeSize = static_cast<int64_t>(codes_[call.code].bytes.size());
        info.parallelExtent = sk.function.parallelExtent;
        info.flops = loop::countFlops(k->computation);
        exe_->flops += info.flops;
        runtime::RunKernel run;
        run.kernel = static_cast<int32_t>(exe_->kernels.size());
        for (size_t p = 0; p < call.buffers.size(); ++p) {
          const int64_t b = call.buffers[p];
          run.buffers.push_back(b < 0 ? packedSlot(static_cast<size_t>(-1 - b)) : slot(static_cast<size_t>(b)));
          info.bytes += bytesMoved(*k, sk.params[p], b);
        }
        exe_->kernels.push_back(std::move(info));
        exe_->instructions.emplace_back(std::move(run));
      } else if (const auto* h = std::get_if<HostStep>(&l_.steps[i])) {
        runtime::RunHostOp run{h->op, h->node, h->attrs, {}, {}};
        for (const auto& o : h->inputs)
          run.inputs.push_back(o.buffer < 0 ? SlotId{} : slot(static_cast<size_t>(o.buffer), o.dims));
        for (const auto& o : h->outputs)
          run.outputs.push_back(o.buffer < 0 ? SlotId{} : slot(static_cast<size_t>(o.buffer), o.dims));
        exe_->instructions.emplace_back(std::move(run));
      } else if (const auto* r = std::get_if<RegionStep>(&l_.steps[i])) {
        runtime::RunRegion run;
        run.kind = r->kind;
        run.nodeName = r->node;
        run.attrs = r->attrs;
        auto slots = [&](const std::vector<HostStep::Operand>& operands, std::vector<SlotId>& ids) {
          for (const auto& o : operands)
            ids.push_back(o.buffer < 0 ? SlotId{} : slot(static_cast<size_t>(o.buffer), o.dims));
        };
        slots(r->inputs, run.inputs);
        slots(r->captured, run.captured);
        slots(r->outputs, run.outputs);
        for (size_t k : r->regions) run.regions.push_back(static_cast<int32_t>(k));
        exe_->instructions.emplace_back(std::move(run));
      } else if (const auto* c = std::get_if<CheckStep>(&l_.steps[i])) {
        exe_->instructions.emplace_back(runtime::CheckRange{slot(c->buffer), c->low, c->high, c->node});
      } else if (const auto* copy = std::get_if<CopyStep>(&l_.steps[i])) {
        const PortInfo& p = l_.outputs[static_cast<size_t>(copy->output)];
        exe_->instructions.emplace_back(
            runtime::CopySlot{slot(copy->from, p.dims), exe_->outputs[static_cast<size_t>(copy->output)].slot});
      }
    }
  }

  Lowered l_;
  const BuildInputs& in_;
  std::shared_ptr<Executable> exe_;
  std::map<uint64_t, ScheduledKernel> scheduled_;
  std::vector<Call> calls_;  ///< one a step; empty for steps that are not kernels
  std::vector<PackedConstant> packs_;
  std::map<std::pair<BufferIndex, uint64_t>, size_t> packIndex_;
  std::vector<codegen::KernelCode> codes_;
  std::vector<int64_t> offsets_;
  std::vector<int32_t> constantIndex_;
  std::vector<int64_t> arenaOffset_;
  std::map<std::pair<size_t, std::vector<int64_t>>, SlotId> slots_;
  std::map<size_t, SlotId> packedSlots_;
};

}  // namespace

Result<std::shared_ptr<Executable>> buildExecutable(Lowered lowered, const BuildInputs& in) {
  return Builder(std::move(lowered), in).run();
}

}  // namespace locution::driver
