// Recipes of what moves elements, looks them up, or makes them from nothing.
#include <algorithm>

#include "graph_maker.h"

namespace locution::fuzz {

namespace {

using graph::Attrs;

DType indexType(GraphMaker& g) { return g.oneOf({DType::I64, DType::I64, DType::I32}); }

bool slice(GraphMaker& g, const std::string& op) {
  ValueId x = g.any(1);
  Ints d = g.dims(x), axes = g.permutation(g.rank(x)), starts, ends, steps;
  axes.resize(static_cast<size_t>(1 + g.pick(g.rank(x))));
  for (int64_t a : axes) {
    int64_t e = d[static_cast<size_t>(a)] + 1, step = g.oneOf<int64_t>({1, 1, 1, 2, 3, -1, -2});
    int64_t from = g.pick(e), to = g.pick(e);
    if ((from > to) == (step > 0)) std::swap(from, to);
    starts.push_back(g.chance(4) ? from - e + 1 : from);
    ends.push_back(g.chance(4) ? g.oneOf<int64_t>({INT64_MAX, INT64_MIN, 1000, -1000}) : to);
    steps.push_back(step);
  }
  std::vector<ValueId> in = {x, g.ints(starts), g.ints(ends), g.ints(axes), g.ints(steps)};
  return g.make(op, in);
}

bool gatherElements(GraphMaker& g, const std::string& op) {
  ValueId x = g.any(1);
  Ints d = g.dims(x), i = d;
  int64_t axis = g.axisOf(x), extent = d[static_cast<size_t>(axis < 0 ? axis + g.rank(x) : axis)];
  for (int64_t& e : i) e = std::min<int64_t>(e, 1 + g.pick(std::max<int64_t>(1, e)));
  if (extent == 0) return false;
  return g.make(op, {x, g.indices(indexType(g), i, -extent, extent - 1)}, {{"axis", axis}});
}

bool gatherND(GraphMaker& g, const std::string& op) {
  ValueId x = g.any(1, 4);
  Ints d = g.dims(x);
  int64_t batch = g.chance(3) ? g.pick(g.rank(x)) : 0, depth = 1 + g.pick(g.rank(x) - batch);
  Ints shape(d.begin(), d.begin() + batch);
  for (int64_t i = g.pick(3); i-- > 0;) shape.push_back(1 + g.pick(4));
  shape.push_back(depth);
  int64_t least = *std::min_element(d.begin() + batch, d.begin() + batch + depth);
  if (least < 1) return false;
  return g.make(op, {x, g.indices(DType::I64, shape, -least, least - 1)}, {{"batch_dims", batch}});
}

bool scatterElements(GraphMaker& g, const std::string& op) {
  ValueId x = g.numeric(1);
  Ints d = g.dims(x), i = d;
  int64_t axis = g.axisOf(x), extent = d[static_cast<size_t>(axis < 0 ? axis + g.rank(x) : axis)];
  if (extent == 0) return false;
  for (int64_t& e : i) e = std::min<int64_t>(e, 1 + g.pick(std::max<int64_t>(1, e)));
  Attrs a{{"axis", axis}};
  g.maybe(a, "reduction", std::string(g.oneOf({"none", "add", "mul", "max", "min"})));
  return g.make(op, {x, g.indices(indexType(g), i, -extent, extent - 1), g.value(g.dtype(x), i)}, a);
}

bool scatterND(GraphMaker& g, const std::string& op) {
  ValueId x = g.numeric(1, 4);
  Ints d = g.dims(x);
  int64_t depth = 1 + g.pick(g.rank(x));
  Ints shape, updates;
  for (int64_t i = g.pick(3); i-- > 0;) shape.push_back(1 + g.pick(4));
  updates = shape;
  updates.insert(updates.end(), d.begin() + depth, d.end());
  shape.push_back(depth);
  int64_t least = *std::min_element(d.begin(), d.begin() + depth);
  if (least < 1) return false;
  Attrs a;
  g.maybe(a, "reduction", std::string(g.oneOf({"none", "add", "mul", "max", "min"})));
  return g.make(op, {x, g.indices(DType::I64, shape, -least, least - 1), g.value(g.dtype(x), updates)}, a);
}

bool pad(GraphMaker& g, const std::string& op) {
  ValueId x = g.any();
  std::string mode = g.oneOf({"constant", "edge", "reflect", "wrap"});
  Ints pads(static_cast<size_t>(2 * g.rank(x)));
  for (int64_t& p : pads) p = mode != "constant" || !g.chance(4) ? g.pick(3) : -1;
  ValueId fill = mode == "constant" && g.chance(2) ? g.value(g.dtype(x), {}) : ValueId{};
  return g.make(op, {x, g.ints(pads), fill}, {{"mode", mode}});
}

bool split(GraphMaker& g, const std::string& op) {
  ValueId x = g.any(1);
  int64_t axis = g.axisOf(x), extent = g.dims(x)[static_cast<size_t>(axis < 0 ? axis + g.rank(x) : axis)];
  if (g.chance(2)) {
    int64_t n = 1 + g.pick(3);
    return g.make(op, {x}, {{"axis", axis}, {"num_outputs", n}}, static_cast<size_t>(n));
  }
  int64_t first = g.pick(extent + 1);
  return g.make(op, {x, g.ints({first, extent - first})}, {{"axis", axis}}, 2);
}

bool reshape(GraphMaker& g, const std::string& op) {
  ValueId x = g.any();
  Ints d = g.dims(x);
  auto n = static_cast<int64_t>(d.size());
  if (n >= 2 && g.chance(2)) {
    int64_t at = g.pick(n - 1);
    d[static_cast<size_t>(at)] *= d[static_cast<size_t>(at) + 1];
    d.erase(d.begin() + at + 1);
  } else if (n < 5) {
    d.insert(d.begin() + g.pick(n + 1), 1);
  }
  for (size_t i = 2; i < d.size(); ++i)
    if (d[i] % 2 == 0 && d[i] > 0 && g.chance(4)) {
      d[i] /= 2;
      d[i - 1] *= 2;
    }
  if (!d.empty() && g.chance(4)) d[static_cast<size_t>(g.pick(static_cast<int64_t>(d.size())))] = -1;
  return g.make(op, {x, g.ints(d)});
}

}  // namespace

void addMovementRecipes(std::vector<Recipe>& out) {
  out.push_back({{"Reshape"}, reshape});
  out.push_back({{"Flatten"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.any();
                   return g.make(op, {x}, {{"axis", g.pick(g.rank(x) + 1)}});
                 }});
  out.push_back({{"Squeeze"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.any();
                   if (g.chance(3)) return g.make(op, {x});
                   Ints axes, d = g.dims(x);
                   for (size_t i = 0; i < d.size(); ++i)
                     if (d[i] == 1 && g.chance(2)) axes.push_back(static_cast<int64_t>(i));
                   return g.make(op, {x, g.ints(axes)});
                 }});
  out.push_back({{"Unsqueeze"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.any(0, 4);
                   return g.make(op, {x, g.ints({g.pick(2 * g.rank(x) + 2) - g.rank(x) - 1})});
                 }});
  out.push_back({{"Transpose"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.any();
                   return g.chance(4) ? g.make(op, {x}) : g.make(op, {x}, {{"perm", g.permutation(g.rank(x))}});
                 }});
  out.push_back({{"Concat"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.any(1);
                   int64_t axis = g.axisOf(x);
                   std::vector<ValueId> in = {x};
                   for (int64_t i = g.pick(3); i-- > 0;) {
                     Ints d = g.dims(x);
                     d[static_cast<size_t>(axis < 0 ? axis + g.rank(x) : axis)] = g.pick(5);
                     in.push_back(g.chance(3) ? x : g.value(g.dtype(x), d));
                   }
                   return g.make(op, in, {{"axis", axis}});
                 }});
  out.push_back({{"Split"}, split});
  out.push_back({{"Expand"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.any(0, 4);
                   Ints d = g.dims(x);
                   for (int64_t& e : d) e = e == 1 ? 1 + g.pick(5) : g.chance(4) ? 1 : e;
                   if (g.chance(3)) d.insert(d.begin(), 1 + g.pick(3));
                   return g.make(op, {x, g.ints(d)});
                 }});
  out.push_back({{"Tile"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.any();
                   Ints repeats(static_cast<size_t>(g.rank(x)));
                   for (int64_t& r : repeats) r = g.chance(20) ? 0 : 1 + g.pick(3);
                   return g.make(op, {x, g.ints(repeats)});
                 }});
  out.push_back({{"DepthToSpace", "SpaceToDepth"}, [](GraphMaker& g, const std::string& op) {
                   int64_t b = 1 + g.pick(3), c = 1 + g.pick(2), h = 1 + g.pick(3), w = 1 + g.pick(3);
                   Attrs a{{"blocksize", b}};
                   if (op == "SpaceToDepth") return g.make(op, {g.value(g.numericDType(), {2, c, h * b, w * b})}, a);
                   g.maybe(a, "mode", std::string(g.oneOf({"DCR", "CRD"})));
                   return g.make(op, {g.value(g.numericDType(), {2, c * b * b, h, w})}, a);
                 }});
  out.push_back({{"Trilu"}, [](GraphMaker& g, const std::string& op) {
                   ValueId k = g.chance(2) ? ValueId{} : g.constant(Tensor::scalarI64(g.pick(9) - 4));
                   return g.make(op, {g.any(2), k}, {{"upper", g.pick(2)}});
                 }});
  out.push_back({{"ReverseSequence"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.any(2);
                   int64_t batch = g.pick(2);
                   Ints d = g.dims(x);
                   ValueId lengths =
                       g.indices(DType::I64, {d[static_cast<size_t>(batch)]}, 1, d[static_cast<size_t>(1 - batch)]);
                   return g.make(op, {x, lengths}, {{"batch_axis", batch}, {"time_axis", 1 - batch}});
                 }});
  out.push_back({{"Slice"}, slice});
  out.push_back({{"Pad"}, pad});
  out.push_back({{"CenterCropPad"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.numeric(1);
                   Ints d(static_cast<size_t>(g.rank(x)));
                   for (int64_t& e : d) e = 1 + g.pick(9);
                   return g.make(op, {x, g.ints(d)});
                 }});
  out.push_back({{"Gather"}, [](GraphMaker& g, const std::string& op) {
                   ValueId x = g.any(1);
                   int64_t axis = g.axisOf(x), e = g.dims(x)[static_cast<size_t>(axis < 0 ? axis + g.rank(x) : axis)];
                   if (e == 0) return false;
                   return g.make(op, {x, g.indices(indexType(g), g.anyDims(0, 2), -e, e - 1)}, {{"axis", axis}});
                 }});
  out.push_back({{"GatherElements"}, gatherElements});
  out.push_back({{"GatherND"}, gatherND});
  out.push_back(
      {{"OneHot"}, [](GraphMaker& g, const std::string& op) {
         int64_t depth = 1 + g.pick(6);
         ValueId i = g.indices(g.oneOf({DType::I64, DType::I32, DType::F32}), g.anyDims(0, 3), -depth - 1, depth);
         return g.make(op, {i, g.constant(Tensor::scalarI64(depth)), g.value(g.numericDType(), {2})},
                       {{"axis", g.pick(3) - 1}});
       }});
  out.push_back({{"Shape"}, [](GraphMaker& g, const std::string& op) {
                   Attrs a;
                   if (g.chance(3)) a["start"] = g.pick(5) - 2;
                   if (g.chance(3)) a["end"] = g.pick(5) - 2;
                   return g.make(op, {g.any()}, a);
                 }});
  out.push_back({{"Size"}, [](GraphMaker& g, const std::string& op) { return g.make(op, {g.any()}); }});
  out.push_back({{"ConstantOfShape"}, [](GraphMaker& g, const std::string& op) {
                   Attrs a;
                   g.maybe(a, "value", g.randomTensor(g.anyDType(), {1}));
                   return g.make(op, {g.ints(g.anyDims(0, 3))}, a);
                 }});
  out.push_back(
      {{"Range"}, [](GraphMaker& g, const std::string& op) {
         DType t = g.oneOf({DType::F32, DType::I64, DType::I32, DType::F64, DType::I16});
         auto scalar = [&](double v) {
           Tensor s(t, {});
           s.setElement(0, v);
           return g.constant(s);
         };
         double from = static_cast<double>(g.pick(9)) - 4, step = static_cast<double>(1 + g.pick(3));
         if (g.chance(3)) step = -step;
         return g.make(op, {scalar(from), scalar(from + step * static_cast<double>(g.pick(9))), scalar(step)});
       }});
  out.push_back({{"EyeLike"}, [](GraphMaker& g, const std::string& op) {
                   Attrs a;
                   g.maybe(a, "k", g.pick(7) - 3);
                   if (g.chance(2)) a["dtype"] = std::string(dtypeName(g.numericDType()));
                   return g.make(op, {g.numeric(2, 2)}, a);
                 }});
  out.push_back({{"ScatterElements"}, scatterElements});
  out.push_back({{"ScatterND"}, scatterND});
  out.push_back(
      {{"TensorScatter"}, [](GraphMaker& g, const std::string& op) {
         Ints d = g.anyDims(2, 4), u = d;
         auto axis = static_cast<size_t>(1 + g.pick(static_cast<int64_t>(d.size()) - 1));
         if (d[axis] == 0) return false;
         u[axis] = 1 + g.pick(d[axis]);
         DType t = g.numericDType();
         bool linear = g.chance(2);
         ValueId at =
             g.chance(3) ? ValueId{} : g.indices(DType::I64, {d[0]}, 0, linear ? d[axis] - u[axis] : d[axis] - 1);
         return g.make(op, {g.value(t, d), g.value(t, u), at},
                       {{"axis", static_cast<int64_t>(axis)}, {"mode", std::string(linear ? "linear" : "circular")}});
       }});
}

}  // namespace locution::fuzz
