#include "runtime/validate.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "hostops/host_op.h"
#include "support/strings.h"

namespace locution::runtime {
namespace {

constexpr int64_t kAlignment = 64;
// Far beyond any machine; keeps sums of offsets and sizes from overflowing.
constexpr int64_t kMaxBytes = int64_t{1} << 56;

class Validator {
 public:
  explicit Validator(const Executable& e) : e_(e), written_(e.slots.size(), false) {}

  Status run() {
    if (e_.arenaBytes < 0 || e_.arenaBytes > kMaxBytes)
      return Status::error("an arena of " + std::to_string(e_.arenaBytes) + " bytes");
    LOCUTION_RETURN_IF_ERROR(kernels());
    LOCUTION_RETURN_IF_ERROR(constants());
    for (size_t i = 0; i < e_.slots.size(); ++i)
      LOCUTION_RETURN_IF_ERROR(
          slot(e_.slots[i]).withContext("slot " + std::to_string(i) + " " + quoted(e_.slots[i].name)));
    LOCUTION_RETURN_IF_ERROR(ports());
    for (const Region& region : e_.regions) {
      if (region.code) LOCUTION_RETURN_IF_ERROR(validate(*region.code).withContext(region.name));
    }
    for (size_t i = 0; i < e_.instructions.size(); ++i) {
      Status status = std::visit([&](const auto& x) { return instruction(x); }, e_.instructions[i]);
      LOCUTION_RETURN_IF_ERROR(status.withContext("instruction " + std::to_string(i)));
    }
    for (const Port& port : e_.outputs)
      if (at(port.slot).space == SlotSpace::Dynamic && !isWritten(port.slot))
        return Status::error("output " + quoted(port.name) + " is never written");
    return Status::ok();
  }

 private:
  const Slot& at(SlotId id) const { return e_.slots[static_cast<size_t>(id.index)]; }
  bool isWritten(SlotId id) const { return written_[static_cast<size_t>(id.index)]; }
  bool isSlot(SlotId id) const { return id.isValid() && static_cast<size_t>(id.index) < e_.slots.size(); }

  Status kernels() {
    auto codeBytes = static_cast<int64_t>(e_.code.size());
    for (const KernelInfo& k : e_.kernels) {
      if (k.codeSize <= 0 || k.codeOffset < 0 || k.codeOffset > codeBytes || k.codeSize > codeBytes - k.codeOffset)
        return Status::error("the code of kernel " + quoted(k.name) + " lies outside the executable's");
      if (k.codeOffset % kAlignment != 0)
        return Status::error("the code of kernel " + quoted(k.name) + " is not aligned");
      if (k.parallelExtent < 0) return Status::error("kernel " + quoted(k.name) + " has a negative parallel extent");
    }
    return Status::ok();
  }

  Status constants() {
    for (size_t i = 0; i < e_.constants.size(); ++i) {
      const Tensor& t = e_.constants[i];
      if (!t.isValid()) return Status::error("constant " + std::to_string(i) + " is missing");
      if (t.dtype() != DType::String && t.bytes() > 0 && reinterpret_cast<uintptr_t>(t.raw()) % kAlignment != 0)
        return Status::error("constant " + std::to_string(i) + " is not aligned");
    }
    return Status::ok();
  }

  Status slot(const Slot& s) {
    bool dynamic = s.space == SlotSpace::Dynamic || s.space == SlotSpace::Output || s.space == SlotSpace::Input;
    for (int64_t d : s.dims)
      if (d < -1 || (d == -1 && !dynamic)) return Status::error("a dim of " + std::to_string(d));
    int64_t bytes = slotBytes(s);
    if (isStaticSlot(s) && (bytes < 0 || bytes > kMaxBytes)) return Status::error("absurdly large");
    if (s.offset < 0 || s.offset > kMaxBytes) return Status::error("an offset of " + std::to_string(s.offset));
    switch (s.space) {
      case SlotSpace::Arena:
        if (s.dtype == DType::String) return Status::error("strings in the arena");
        if (s.offset % kAlignment != 0) return Status::error("not aligned in the arena");
        if (bytes > e_.arenaBytes - s.offset) return Status::error("outside the arena");
        return Status::ok();
      case SlotSpace::Constant:
        return constantSlot(s, bytes);
      case SlotSpace::Input:
        return portSlot(s, e_.inputs, "input");
      case SlotSpace::Output:
        return portSlot(s, e_.outputs, "output");
      case SlotSpace::Dynamic:
        return Status::ok();
    }
    return Status::error("in no known space");
  }

  Status constantSlot(const Slot& s, int64_t bytes) const {
    if (s.index < 0 || static_cast<size_t>(s.index) >= e_.constants.size())
      return Status::error("constant " + std::to_string(s.index) + " does not exist");
    const Tensor& t = e_.constants[static_cast<size_t>(s.index)];
    if (s.dtype == DType::String || t.dtype() == DType::String) {
      if (s.dtype != t.dtype() || s.dims != t.dims() || s.offset != 0)
        return Status::error("differs from its constant");
      return Status::ok();
    }
    if (s.offset % kAlignment != 0) return Status::error("not aligned in its constant");
    if (bytes > static_cast<int64_t>(t.bytes()) - s.offset) return Status::error("outside its constant");
    return Status::ok();
  }

  static Status portSlot(const Slot& s, const std::vector<Port>& ports, std::string_view what) {
    if (s.index < 0 || static_cast<size_t>(s.index) >= ports.size())
      return Status::error(std::string(what) + " " + std::to_string(s.index) + " does not exist");
    const Port& port = ports[static_cast<size_t>(s.index)];
    if (s.offset != 0) return Status::error("an offset into an " + std::string(what));
    if (port.kind != ValueKind::Tensor) return Status::ok();
    // A view may have other dims (a reshape that costs nothing), never other bytes.
    bool same = port.dtype == s.dtype && port.dims == s.dims;
    bool sameBytes = isStaticSlot(s) && s.dtype != DType::String && port.dtype != DType::String &&
                     slotBytes(s) == slotBytes(Slot{port.dtype, port.dims, s.space, 0, 0, {}});
    if (!same && !sameBytes) return Status::error("differs from " + std::string(what) + " " + quoted(port.name));
    return Status::ok();
  }

  Status ports() {
    for (const std::vector<Port>* list : {&e_.inputs, &e_.outputs}) {
      for (size_t i = 0; i < list->size(); ++i) {
        const Port& port = (*list)[i];
        SlotSpace own = list == &e_.inputs ? SlotSpace::Input : SlotSpace::Output;
        std::string name = (list == &e_.inputs ? "input " : "output ") + quoted(port.name);
        for (int64_t d : port.dims)
          if (d < -1) return Status::error(name + " has a dim of " + std::to_string(d));
        if (own == SlotSpace::Input && !port.slot.isValid()) continue;  // nothing reads it
        if (!isSlot(port.slot)) return Status::error(name + " has no slot");
        const Slot& s = at(port.slot);
        if (s.space == own ? static_cast<size_t>(s.index) != i : own == SlotSpace::Input)
          return Status::error(name + " has another port's slot");
        if (s.dtype != port.dtype && port.kind == ValueKind::Tensor)
          return Status::error(name + " differs from its slot");
        if (own == SlotSpace::Output && s.space == SlotSpace::Output && port.kind == ValueKind::Tensor &&
            !isStaticSlot(s))
          return Status::error(name + " has a shape that depends on data, but no dynamic slot");
      }
    }
    return Status::ok();
  }

  // What is read must hold something by now.
  Status read(SlotId id) const {
    if (!isSlot(id)) return Status::error("slot " + std::to_string(id.index) + " does not exist");
    if (at(id).space == SlotSpace::Dynamic && !isWritten(id))
      return Status::error("slot " + quoted(at(id).name) + " is read before it is written");
    return Status::ok();
  }
  Status write(SlotId id) {
    if (!isSlot(id)) return Status::error("slot " + std::to_string(id.index) + " does not exist");
    SlotSpace space = at(id).space;
    if (space == SlotSpace::Constant || space == SlotSpace::Input)
      return Status::error("slot " + quoted(at(id).name) + " is written, but is constant or an input");
    written_[static_cast<size_t>(id.index)] = true;
    return Status::ok();
  }

  Status instruction(const RunKernel& x) {
    if (x.kernel < 0 || static_cast<size_t>(x.kernel) >= e_.kernels.size())
      return Status::error("kernel " + std::to_string(x.kernel) + " does not exist");
    for (SlotId id : x.buffers) {
      LOCUTION_RETURN_IF_ERROR(read(id));
      if (!isStaticSlot(at(id)) || at(id).dtype == DType::String)
        return Status::error("a kernel can't use slot " + quoted(at(id).name) + ", whose size depends on data");
    }
    return Status::ok();
  }
  Status instruction(const RunHostOp& x) {
    if (hostops::findHostOp(x.op) == nullptr) return Status::error("no host operator is called " + quoted(x.op));
    LOCUTION_RETURN_IF_ERROR(hostops::parseAttrs(x.attrs).status());
    for (SlotId id : x.inputs)
      if (id.isValid()) LOCUTION_RETURN_IF_ERROR(read(id));
    for (SlotId id : x.outputs)
      if (id.isValid()) LOCUTION_RETURN_IF_ERROR(write(id));
    return Status::ok();
  }
  Status instruction(const RunRegion& x) {
    LOCUTION_RETURN_IF_ERROR(hostops::parseAttrs(x.attrs).status());
    for (const std::vector<SlotId>* list : {&x.inputs, &x.captured})
      for (SlotId id : *list)
        if (id.isValid() || list == &x.captured) LOCUTION_RETURN_IF_ERROR(read(id));
    const size_t wanted = x.kind == RegionKind::If ? 2 : 1;
    if (x.regions.size() != wanted)
      return Status::error("it has " + std::to_string(x.regions.size()) + " regions instead of " +
                           std::to_string(wanted));
    const bool takesInputs = x.kind == RegionKind::Loop || x.kind == RegionKind::Scan;
    for (int32_t r : x.regions) {
      if (r < 0 || static_cast<size_t>(r) >= e_.regions.size())
        return Status::error("region " + std::to_string(r) + " does not exist");
      const Region& region = e_.regions[static_cast<size_t>(r)];
      for (int32_t c : region.captures)
        if (c < 0 || static_cast<size_t>(c) >= x.captured.size())
          return Status::error(quoted(region.name) + " captures value " + std::to_string(c) + ", which does not exist");
      if (!region.code) continue;
      const size_t inputs = (takesInputs ? x.inputs.size() : 0) + region.captures.size();
      const size_t outputs = x.outputs.size() + (x.kind == RegionKind::Loop ? 1 : 0);
      if (region.code->inputs.size() != inputs || region.code->outputs.size() != outputs)
        return Status::error(quoted(region.name) + " has other inputs or outputs than its instruction");
    }
    for (SlotId id : x.outputs)
      if (id.isValid()) LOCUTION_RETURN_IF_ERROR(write(id));
    return Status::ok();
  }
  Status instruction(const CheckRange& x) const {
    LOCUTION_RETURN_IF_ERROR(read(x.slot));
    if (!isInteger(at(x.slot).dtype) || isSubByte(at(x.slot).dtype))
      return Status::error("a range check of what is no integer");
    if (at(x.slot).space != SlotSpace::Dynamic && !isStaticSlot(at(x.slot)))
      return Status::error("a range check of a shape that is not known");
    return Status::ok();
  }
  Status instruction(const CopySlot& x) {
    LOCUTION_RETURN_IF_ERROR(read(x.from));
    LOCUTION_RETURN_IF_ERROR(write(x.to));
    const Slot &from = at(x.from), &to = at(x.to);
    if (from.space == SlotSpace::Dynamic || to.space == SlotSpace::Dynamic) {
      // A value moves as a whole.
      return from.dtype == to.dtype ? Status::ok() : Status::error("a copy to another type");
    }
    if (from.dtype == DType::String || to.dtype == DType::String)
      return from.dtype == to.dtype ? Status::ok() : Status::error("a copy to another type");
    if (slotBytes(from) < 0 || slotBytes(from) != slotBytes(to)) return Status::error("a copy to another size");
    return Status::ok();
  }

  const Executable& e_;
  std::vector<bool> written_;
};

}  // namespace

bool isStaticSlot(const Slot& slot) {
  return std::all_of(slot.dims.begin(), slot.dims.end(), [](int64_t d) { return d >= 0; });
}
int64_t slotBytes(const Slot& slot) { return hostops::checkedBytes(slot.dtype, slot.dims); }

Status validate(const Executable& executable) { return Validator(executable).run(); }

}  // namespace locution::runtime
