#include "runtime/format_meta.h"

#include <map>
#include <utility>
#include <variant>

#include "hostops/attrs.h"
#include "hostops/byte_stream.h"

namespace locution::runtime {
namespace {

using hostops::ByteReader;
using hostops::ByteWriter;

constexpr uint64_t kAlignment = 64;
constexpr int kDTypes =
#define DTYPE(Name, text, bits, kind) +1
#include "core/dtypes.inc"
#undef DTYPE
    ;

// The same functions, once with a Writer and once with a Reader: the two can't drift apart.
struct Writer {
  ByteWriter out;
  template <typename T>
  void number(const T& v) {
    out.number(v);
  }
  void text(const std::string& v) { out.text(v); }
  void numbers(const std::vector<int64_t>& v) { out.numbers(v); }
  template <typename T>
  void enumerator(const T& v, int) {
    out.number(static_cast<uint8_t>(v));
  }
  void id(const SlotId& v) { out.number(v.index); }
  template <typename T, typename F>
  void list(const std::vector<T>& items, F each) {
    out.number(static_cast<uint64_t>(items.size()));
    for (const T& item : items) each(item);
  }
  bool failed() const { return false; }
};

struct Reader {
  ByteReader in;
  template <typename T>
  void number(T& v) {
    v = in.number<T>();
  }
  void text(std::string& v) { v = in.text(); }
  void numbers(std::vector<int64_t>& v) { v = in.numbers<int64_t>(); }
  template <typename T>
  void enumerator(T& v, int limit) {
    v = in.enumerator<T>(limit);
  }
  void id(SlotId& v) { v.index = in.number<int32_t>(); }
  template <typename T, typename F>
  void list(std::vector<T>& items, F each) {
    // Items are appended as they are read: a count can't make more memory than the file has bytes.
    for (size_t n = in.count(1); n > 0 && !in.failed(); --n) each(items.emplace_back());
  }
  bool failed() const { return in.failed(); }
};

template <typename S, typename T>
void walk(S& s, T& port) requires std::is_same_v<std::remove_const_t<T>, Port> {
  s.text(port.name);
  s.enumerator(port.dtype, kDTypes);
  s.numbers(port.dims);
  s.id(port.slot);
  s.enumerator(port.kind, static_cast<int>(ValueKind::Optional) + 1);
  s.text(port.required);
}
template <typename S, typename T>
void walk(S& s, T& slot) requires std::is_same_v<std::remove_const_t<T>, Slot> {
  s.enumerator(slot.dtype, kDTypes);
  s.numbers(slot.dims);
  s.enumerator(slot.space, static_cast<int>(SlotSpace::Dynamic) + 1);
  s.number(slot.index);
  s.number(slot.offset);
  s.text(slot.name);
}
template <typename S, typename T>
void walk(S& s, T& kernel) requires std::is_same_v<std::remove_const_t<T>, KernelInfo> {
  s.text(kernel.name);
  s.text(kernel.op);
  s.text(kernel.sentence);
  s.list(kernel.ops, [&](auto& op) { s.text(op); });
  s.number(kernel.codeOffset);
  s.number(kernel.codeSize);
  s.number(kernel.parallelExtent);
  s.number(kernel.flops);
  s.number(kernel.bytes);
}
template <typename S, typename T>
void walk(S& s, T& x) requires std::is_same_v<std::remove_const_t<T>, RunKernel> {
  s.number(x.kernel);
  s.list(x.buffers, [&](auto& id) { s.id(id); });
}
template <typename S, typename T>
void walk(S& s, T& x) requires std::is_same_v<std::remove_const_t<T>, RunHostOp> {
  s.text(x.op);
  s.text(x.nodeName);
  s.text(x.attrs);
  s.list(x.inputs, [&](auto& id) { s.id(id); });
  s.list(x.outputs, [&](auto& id) { s.id(id); });
}
template <typename S, typename T>
void walk(S& s, T& x) requires std::is_same_v<std::remove_const_t<T>, CheckRange> {
  s.id(x.slot);
  s.number(x.low);
  s.number(x.high);
  s.text(x.nodeName);
}
template <typename S, typename T>
void walk(S& s, T& x) requires std::is_same_v<std::remove_const_t<T>, CopySlot> {
  s.id(x.from);
  s.id(x.to);
}

template <typename S, typename T>
void walk(S& s, T& x) requires std::is_same_v<std::remove_const_t<T>, RunRegion> {
  s.enumerator(x.kind, static_cast<int>(RegionKind::Scan) + 1);
  s.text(x.nodeName);
  s.text(x.attrs);
  s.list(x.inputs, [&](auto& id) { s.id(id); });
  s.list(x.captured, [&](auto& id) { s.id(id); });
  s.list(x.outputs, [&](auto& id) { s.id(id); });
  s.list(x.regions, [&](auto& r) { s.number(r); });
}

// An instruction is its index in the variant and then its fields.
void walkInstruction(Writer& s, const Instruction& instruction) {
  s.number(static_cast<uint8_t>(instruction.index()));
  std::visit([&](const auto& x) { walk(s, x); }, instruction);
}
template <size_t... I>
void readInstruction(Reader& s, Instruction& instruction, uint8_t kind, std::index_sequence<I...>) {
  bool known = ((kind == I && (walk(s, instruction.emplace<I>()), true)) || ...);
  if (!known) s.in.fail();
}
void walkInstruction(Reader& s, Instruction& instruction) {
  auto kind = s.in.number<uint8_t>();
  readInstruction(s, instruction, kind, std::make_index_sequence<std::variant_size_v<Instruction>>());
}

template <typename S, typename T>
void walk(S& s, T& e) requires std::is_same_v<std::remove_const_t<T>, Executable> {
  s.text(e.modelName);
  s.text(e.compilerVersion);
  s.number(e.arenaBytes);
  s.number(e.flops);
  s.list(e.inputs, [&](auto& x) { walk(s, x); });
  s.list(e.outputs, [&](auto& x) { walk(s, x); });
  s.list(e.slots, [&](auto& x) { walk(s, x); });
  s.list(e.kernels, [&](auto& x) { walk(s, x); });
  s.list(e.instructions, [&](auto& x) { walkInstruction(s, x); });
}

Tensor readConstant(ByteReader& in, const std::shared_ptr<Storage>& storage, uint64_t begin, uint64_t size) {
  auto dtype = in.enumerator<DType>(kDTypes);
  if (dtype == DType::String) return hostops::readTensor(in);
  auto dims = in.numbers<int64_t>();
  auto offset = in.number<uint64_t>();
  int64_t bytes = hostops::checkedBytes(dtype, dims);
  if (in.failed() || bytes < 0 || offset % kAlignment != 0 || offset > size ||
      static_cast<uint64_t>(bytes) > size - offset) {
    in.fail();
    return {};
  }
  return Tensor(dtype, std::move(dims), storage, begin + offset);
}

}  // namespace

ConstantLayout layOutConstants(const std::vector<Tensor>& constants) {
  ConstantLayout layout;
  for (const Tensor& t : constants) {
    layout.bytes = (layout.bytes + kAlignment - 1) / kAlignment * kAlignment;
    layout.offsets.push_back(layout.bytes);
    if (t.dtype() != DType::String) layout.bytes += t.bytes();
  }
  return layout;
}

std::vector<const Executable*> allExecutables(const Executable& executable) {
  std::vector<const Executable*> out = {&executable};
  for (const Region& region : executable.regions) {
    if (!region.code) continue;
    std::vector<const Executable*> inner = allExecutables(*region.code);
    out.insert(out.end(), inner.begin(), inner.end());
  }
  return out;
}

uint64_t codeEnd(uint64_t begin, const Executable& executable) {
  return (begin + executable.code.size() + kAlignment - 1) / kAlignment * kAlignment;
}

namespace {

// Regions within regions: deeper than this is no model.
constexpr int kMaxDepth = 64;

struct WritePosition {
  size_t constant = 0;
  uint64_t code = 0;
};

void writeOne(Writer& s, const Executable& e, const ConstantLayout& layout, WritePosition& at) {
  walk(s, e);
  s.number(at.code);
  s.number(static_cast<uint64_t>(e.code.size()));
  at.code = codeEnd(at.code, e);
  s.out.number(static_cast<uint64_t>(e.constants.size()));
  for (const Tensor& t : e.constants) {
    uint64_t offset = layout.offsets[at.constant++];
    s.number(static_cast<uint8_t>(t.dtype()));
    if (t.dtype() == DType::String) {
      hostops::writeTensor(s.out, t);
    } else {
      s.numbers(t.dims());
      s.number(offset);
    }
  }
  s.out.number(static_cast<uint64_t>(e.regions.size()));
  for (const Region& region : e.regions) {
    s.text(region.name);
    s.list(region.captures, [&](auto& c) { s.number(c); });
    s.text(region.open);
    s.number(static_cast<uint8_t>(region.code ? 1 : 0));
    if (region.code) writeOne(s, *region.code, layout, at);
  }
}

struct ReadFrom {
  std::string_view code;
  const std::shared_ptr<Storage>& storage;
  uint64_t begin, size;
  const TargetSpec& target;
};

std::shared_ptr<Executable> readOne(Reader& s, const ReadFrom& from, int depth) {
  auto e = std::make_shared<Executable>();
  e->target = from.target;
  walk(s, *e);
  uint64_t codeBegin = 0, codeSize = 0;
  s.number(codeBegin);
  s.number(codeSize);
  if (depth > kMaxDepth || codeBegin > from.code.size() || codeSize > from.code.size() - codeBegin) {
    s.in.fail();
    return e;
  }
  const auto* code = reinterpret_cast<const std::byte*>(from.code.data() + codeBegin);
  e->code.assign(code, code + codeSize);
  for (size_t n = s.in.count(9); n > 0 && !s.failed(); --n)
    e->constants.push_back(readConstant(s.in, from.storage, from.begin, from.size));
  for (size_t n = s.in.count(16); n > 0 && !s.failed(); --n) {
    Region& region = e->regions.emplace_back();
    s.text(region.name);
    s.list(region.captures, [&](auto& c) { s.number(c); });
    s.text(region.open);
    auto hasCode = s.in.number<uint8_t>();
    if (hasCode > 1) s.in.fail();
    if (hasCode == 1) region.code = readOne(s, from, depth + 1);
  }
  return e;
}

}  // namespace

std::string writeMeta(const Executable& executable, const ConstantLayout& layout) {
  Writer s;
  s.text(executable.target.str());
  s.out.number(static_cast<uint64_t>(executable.metadata.size()));
  for (const auto& [key, value] : executable.metadata) {
    s.text(key);
    s.text(value);
  }
  WritePosition at;
  writeOne(s, executable, layout, at);
  return s.out.take();
}

Result<std::shared_ptr<Executable>> readMeta(std::string_view meta, std::string_view code,
                                             const std::shared_ptr<Storage>& storage, uint64_t begin, uint64_t size) {
  Reader s{ByteReader(meta)};
  std::string target = s.in.text();
  std::map<std::string, std::string> metadata;
  for (size_t n = s.in.count(16); n > 0 && !s.failed(); --n) {
    std::string key = s.in.text();
    metadata[key] = s.in.text();
  }
  Status nonsense = Status::error("its contents make no sense");
  if (s.failed()) return nonsense;
  auto parsed = parseTarget(target);
  if (!parsed.isOk()) return parsed.status();
  std::shared_ptr<Executable> e = readOne(s, {code, storage, begin, size, *parsed}, 0);
  if (s.failed() || !s.in.atEnd()) return nonsense;
  e->metadata = std::move(metadata);
  return e;
}

}  // namespace locution::runtime
