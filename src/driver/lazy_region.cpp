#include "driver/lazy_region.h"

#include <algorithm>
#include <map>

#include "graph/patch.h"
#include "hostops/attrs.h"
#include "hostops/host_op.h"
#include "passes/specialise.h"

namespace locution::driver {

using graph::Graph;
using graph::ValueId;
using hostops::HostValue;

namespace {

// The dims an input is compiled for: a loop's counter and condition are one element under whatever shape the body declares.
std::vector<int64_t> dimsFor(const ValueType& type, const Tensor& given) {
  const Shape& s = type.shape;
  return given.elements() == 1 && s.isRanked() && s.isStatic() && s.elements() == 1 ? s.extents() : given.dims();
}

// A run's memory goes; what is compiled in stays.
Tensor ownCopy(const Tensor& t) {
  if (t.dtype() == DType::String) return t;
  Tensor copy(t.dtype(), t.dims());
  std::copy(t.raw(), t.raw() + t.bytes(), copy.raw());
  return copy;
}

}  // namespace

std::vector<ValueId> neededMainInputs(const Graph& graph) {
  std::vector<ValueId> out;
  for (graph::NodeId id : graph.main().nodes) {
    const graph::Node& node = graph.node(id);
    const std::vector<size_t>* needed = passes::neededInputs(node.op);
    if (!needed || hostops::findHostOp(node.op)) continue;
    for (size_t i : *needed) {
      ValueId v = node.input(i);
      if (v.isValid() && graph.isMainInput(v) && std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
    }
  }
  return out;
}

Status specialiseTo(Graph& graph, const std::vector<HostValue>& inputs) {
  graph::Patch patch(graph);
  const std::vector<ValueId> ids = graph.main().inputs;
  LOCUTION_CHECK(ids.size() == inputs.size());
  const std::vector<ValueId> needed = neededMainInputs(graph);
  for (size_t i = 0; i < ids.size(); ++i) {
    ValueType type = graph.type(ids[i]);
    if (type.kind != ValueKind::Tensor) continue;
    const std::string name = "value '" + graph.value(ids[i]).name + "'";
    if (!inputs[i].isTensor()) return Status::error(name + " is no tensor");
    const Tensor& t = inputs[i].tensor;
    if (t.dtype() != type.dtype)
      return Status::error(name + " is " + std::string(dtypeName(t.dtype())) + ", but " +
                           std::string(dtypeName(type.dtype)) + " was inferred");
    type.shape = Shape::of(dimsFor(type, t));
    patch.setType(ids[i], type);
    if (std::find(needed.begin(), needed.end(), ids[i]) == needed.end()) continue;
    Tensor value = ownCopy(t.reshaped(type.shape.extents()));
    patch.replaceUses(ids[i], patch.addConstant(graph.value(ids[i]).name + ".value", std::move(value)));
  }
  return Status::ok();
}

Status specialiseModel(Graph& graph, const std::vector<HostValue>& inputs) {
  LOCUTION_CHECK(graph.main().inputs.size() == inputs.size());
  const std::vector<ValueId> needed = passes::shapeInputs(graph);
  std::map<std::string, Shape> shapes;
  std::map<std::string, Tensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueId id = graph.main().inputs[i];
    if (graph.type(id).kind != ValueKind::Tensor || !inputs[i].isTensor()) continue;
    const Tensor& t = inputs[i].tensor;
    shapes[graph.value(id).name] = Shape::of(t.dims());
    if (std::find(needed.begin(), needed.end(), id) != needed.end()) values[graph.value(id).name] = ownCopy(t);
  }
  graph::Patch patch(graph);
  LOCUTION_RETURN_IF_ERROR(passes::specialise(patch, shapes, values));
  return passes::needStaticInputs(graph);
}

LazyRegion::LazyRegion(std::shared_ptr<Session> session, std::shared_ptr<const Graph> graph, Of of)
    : session_(std::move(session)), graph_(std::move(graph)), of_(of), needed_(graph_->main().inputs.size(), false) {
  const std::vector<ValueId> needed = of == Of::Model ? passes::shapeInputs(*graph_) : neededMainInputs(*graph_);
  for (size_t i = 0; i < needed_.size(); ++i)
    needed_[i] = std::find(needed.begin(), needed.end(), graph_->main().inputs[i]) != needed.end();
}

std::string LazyRegion::keyOf(const std::vector<HostValue>& inputs) const {
  hostops::ByteWriter key;
  for (size_t i = 0; i < inputs.size() && i < needed_.size(); ++i) {
    if (graph_->type(graph_->main().inputs[i]).kind != ValueKind::Tensor || !inputs[i].isTensor()) continue;
    const Tensor& t = inputs[i].tensor;
    if (needed_[i]) {
      hostops::writeTensor(key, t);
    } else {
      key.number(static_cast<uint8_t>(t.dtype()));
      key.numbers(t.dims());
    }
  }
  return key.take();
}

std::shared_ptr<const runtime::Program> LazyRegion::find(const std::string& key) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (Entry& e : entries_)
    if (e.key == key) {
      e.lastUse = ++uses_;
      return e.program;
    }
  return nullptr;
}

void LazyRegion::keep(Entry entry) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++compilations_;
  int64_t bytes = entry.bytes;
  for (const Entry& e : entries_) bytes += e.bytes;
  while (!entries_.empty() && (entries_.size() >= kMaxPrograms || bytes > kMaxBytes)) {
    auto oldest = std::min_element(entries_.begin(), entries_.end(),
                                   [](const Entry& a, const Entry& b) { return a.lastUse < b.lastUse; });
    bytes -= oldest->bytes;
    entries_.erase(oldest);
  }
  entry.lastUse = ++uses_;
  entries_.push_back(std::move(entry));
}

std::shared_ptr<const runtime::Program> LazyRegion::compileOpen() {
  if (isOpen_ != Open::Untried) return open_;
  isOpen_ = Open::Useless;
  auto exe = session_->compileOpenRegion(*graph_);
  if (!exe.isOk() || !*exe) return nullptr;
  auto program = runtime::Program::load(*exe);
  if (!program.isOk()) return nullptr;
  isOpen_ = Open::Ready;
  open_ = *program;
  return open_;
}

Result<std::shared_ptr<const runtime::Program>> LazyRegion::compile(const std::vector<HostValue>& inputs) {
  std::string key = keyOf(inputs);
  if (auto known = find(key)) return known;
  std::lock_guard<std::mutex> lock(compiling_);
  if (auto known = find(key)) return known;
  if (of_ == Of::Region && compilations_ >= kMaxSpecialised)
    if (auto open = compileOpen()) return open;
  Graph graph = *graph_;
  LOCUTION_RETURN_IF_ERROR(of_ == Of::Model ? specialiseModel(graph, inputs) : specialiseTo(graph, inputs));
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<const runtime::Executable> exe, session_->compileRegion(std::move(graph)));
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<const runtime::Program> program, runtime::Program::load(exe));
  keep({std::move(key), program, exe->weightBytes() + static_cast<int64_t>(exe->code.size()), 0});
  return program;
}

}  // namespace locution::driver
