#include "schedule/whole_bytes.h"

#include <algorithm>

#include "loop/passes.h"

namespace locution::schedule {

using loop::BufferRef;
using loop::Expr;
using loop::Stage;

namespace {

DType bitsType(DType type) { return dtypeBits(type) == 4 ? DType::U4 : DType::U2; }

Expr widened(const Expr& value) {
  DType type = value->type.dtype;
  return loop::cast(DType::U8, isFloat(type) ? loop::bitcast(bitsType(type), value) : value);
}
Expr narrowed(DType type, const Expr& byte) {
  return isFloat(type) ? loop::bitcast(type, loop::cast(bitsType(type), byte)) : loop::cast(type, byte);
}

void widen(Stage* s, const BufferRef& wide) {
  s->out = wide;
  if (s->epilogue) {
    s->epilogue = widened(s->epilogue);
  } else if (s->combiner == loop::Combiner::None) {
    s->body = widened(s->body);
  } else {
    s->acc = loop::makeVar("acc", s->body->type);
    s->epilogue = widened(s->acc);
  }
}

Stage join(const BufferRef& wide, const BufferRef& bytes, DType type) {
  std::vector<int64_t> dims = loop::extents(*wide);
  int64_t count = 1, perByte = 8 / dtypeBits(type);
  for (int64_t d : dims) count *= d;
  Stage s;
  s.out = bytes;
  s.axes = {{loop::makeVar("byte"), loop::extents(*bytes)[0]}};
  for (int64_t k = 0; k < perByte; ++k) {
    Expr at = Expr(s.axes[0].var) * perByte + k;
    // The last byte may be half empty: nothing is read past the end.
    bool whole = count % perByte == 0;
    Expr rest = whole ? at : loop::minOf(at, loop::index(count - 1));
    std::vector<Expr> indices(dims.size());
    for (size_t d = dims.size(); d-- > 0;) {
      indices[d] = d == 0 ? rest : loop::floorMod(rest, loop::index(dims[d]));
      rest = loop::floorDiv(rest, loop::index(std::max<int64_t>(dims[d], 1)));
    }
    auto word = [](int64_t v) { return loop::intImm(DType::U8, v); };
    Expr bits = loop::binary(loop::BinaryOp::And, loop::load(wide, indices), word((int64_t{1} << dtypeBits(type)) - 1));
    if (!whole) bits = loop::select(loop::lt(at, loop::index(count)), bits, word(0));
    bits = loop::binary(loop::BinaryOp::Shl, bits, word(k * dtypeBits(type)));
    s.body = k == 0 ? bits : loop::binary(loop::BinaryOp::Or, s.body, bits);
  }
  return s;
}

}  // namespace

std::vector<WholeBytes> writeWholeBytes(loop::Computation* c) {
  std::vector<WholeBytes> changes;
  for (size_t i = 0; i < c->stages.size(); ++i) {
    BufferRef old = c->stages[i].out;
    DType type = old->element.dtype;
    std::vector<int64_t> dims = loop::extents(*old);
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    if (!isSubByte(type) || count == 0) continue;
    BufferRef wide = loop::makeBuffer(old->name + ".wide", {DType::U8, 1}, dims);
    widen(&c->stages[i], wide);
    auto read = [&](const loop::Load& l) { return narrowed(type, loop::load(wide, l.indices, l.mask)); };
    for (size_t k = i + 1; k < c->stages.size(); ++k) {
      c->stages[k].body = loop::replaceLoads(c->stages[k].body, old.get(), read);
      if (c->stages[k].epilogue) c->stages[k].epilogue = loop::replaceLoads(c->stages[k].epilogue, old.get(), read);
    }
    auto output = std::find(c->outputs.begin(), c->outputs.end(), old);
    if (output == c->outputs.end()) continue;
    BufferRef bytes = loop::makeBuffer(old->name + ".bytes", {DType::U8, 1}, {dtypeBytes(type, count)});
    *output = bytes;
    c->stages.insert(c->stages.begin() + static_cast<std::ptrdiff_t>(i) + 1, join(wide, bytes, type));
    changes.push_back({old, bytes});
    ++i;
  }
  return changes;
}

}  // namespace locution::schedule
