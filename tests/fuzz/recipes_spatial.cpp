// Recipes of products, convolutions, pooling and sampling.
#include <algorithm>

#include "graph_maker.h"

namespace locution::fuzz {

namespace {

using graph::Attrs;

// A window over `n` spatial dims: kernel, strides, dilations, pads or auto_pad.
struct Window {
  Ints kernel, image;
  Attrs attrs;
};
Window window(GraphMaker& g, int64_t n, bool transposed = false) {
  Window w;
  Ints strides, dilations, pads(static_cast<size_t>(2 * n), 0);
  for (int64_t i = 0; i < n; ++i) {
    w.kernel.push_back(1 + g.pick(4));
    strides.push_back(1 + g.pick(3));
    dilations.push_back(g.chance(3) ? 1 + g.pick(3) : 1);
    w.image.push_back(transposed ? 1 + g.pick(6) : (w.kernel.back() - 1) * dilations.back() + 1 + g.pick(6));
    for (int64_t side : {i, i + n}) pads[static_cast<size_t>(side)] = g.pick(std::min<int64_t>(w.kernel.back(), 3));
  }
  if (!g.chance(3)) w.attrs["strides"] = strides;
  w.attrs["dilations"] = dilations;
  if (g.chance(3))
    w.attrs["auto_pad"] = std::string(g.oneOf({"SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"}));
  else if (!g.chance(3))
    w.attrs["pads"] = pads;
  return w;
}

Ints joined(Ints a, const Ints& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

ValueId maybeVector(GraphMaker& g, DType t, int64_t n) { return g.chance(2) ? ValueId{} : g.value(t, {n}); }

bool conv(GraphMaker& g, const std::string& op) {
  Window w = window(g, 1 + g.pick(3));
  int64_t groups = g.chance(3) ? 1 + g.pick(4) : 1, in = 1 + g.pick(6), outs = groups * (1 + g.pick(6));
  w.attrs["group"] = groups;
  DType t = g.floatDType();
  return g.make(op,
                {g.value(t, joined({1 + g.pick(2), in * groups}, w.image)), g.finite(t, joined({outs, in}, w.kernel)),
                 maybeVector(g, t, outs)},
                w.attrs);
}

bool convTranspose(GraphMaker& g, const std::string& op) {
  Window w = window(g, 1 + g.pick(2), true);
  int64_t groups = g.chance(3) ? 1 + g.pick(3) : 1, in = groups * (1 + g.pick(3)), outs = 1 + g.pick(4);
  w.attrs["group"] = groups;
  if (g.chance(3)) w.attrs["output_padding"] = Ints(w.kernel.size(), g.pick(2));
  DType t = g.floatDType();
  return g.make(op,
                {g.value(t, joined({1 + g.pick(2), in}, w.image)), g.finite(t, joined({in, outs}, w.kernel)),
                 maybeVector(g, t, outs * groups)},
                w.attrs);
}

ValueId scalar(GraphMaker& g, DType t, double v) {
  Tensor s(t, {});
  s.setElement(0, v);
  (void)g;
  return g.constant(s);
}

bool quantisedConv(GraphMaker& g, const std::string& op) {
  Window w = window(g, 1 + g.pick(2));
  int64_t groups = g.chance(3) ? 2 : 1, in = 1 + g.pick(5), outs = groups * (1 + g.pick(5));
  w.attrs["group"] = groups;
  DType tx = g.oneOf({DType::U8, DType::I8}), tw = g.oneOf({DType::U8, DType::I8});
  ValueId x = g.value(tx, joined({1 + g.pick(2), in * groups}, w.image)), k = g.value(tw, joined({outs, in}, w.kernel));
  if (op == "ConvInteger") {
    return g.make(op, {x, k, g.chance(2) ? ValueId{} : scalar(g, tx, 3), g.chance(2) ? ValueId{} : scalar(g, tw, 2)},
                  w.attrs);
  }
  Tensor scale(DType::F32, {outs});
  for (int64_t i = 0; i < outs; ++i) scale.setElement(i, g.real(0.01, 0.2));
  bool byChannel = g.chance(2);
  ValueId ws = byChannel ? g.constant(scale) : scalar(g, DType::F32, 0.11);
  ValueId wz = byChannel ? g.constant(Tensor(tw, {outs})) : scalar(g, tw, 1);
  return g.make(op,
                {x, scalar(g, DType::F32, 0.07), scalar(g, tx, 2), k, ws, wz, scalar(g, DType::F32, 0.37),
                 scalar(g, tx, 5), maybeVector(g, DType::I32, outs)},
                w.attrs);
}

// Batch dims of two operands that broadcast.
std::pair<Ints, Ints> batches(GraphMaker& g) {
  Ints a, b;
  for (int64_t i = g.pick(3); i-- > 0;) {
    int64_t e = 1 + g.pick(3);
    a.push_back(g.chance(4) ? 1 : e);
    b.push_back(g.chance(4) ? 1 : e);
  }
  if (g.chance(3)) b.clear();
  return {a, b};
}

bool matMul(GraphMaker& g, const std::string& op) {
  auto [a, b] = batches(g);
  int64_t m = 1 + g.pick(g.chance(4) ? 30 : 8), n = 1 + g.pick(g.chance(4) ? 30 : 8), k = 1 + g.pick(20);
  if (!a.empty() || !g.chance(8)) a.push_back(m);
  a.push_back(k);
  b.push_back(k);
  if (b.size() > 1 || !g.chance(8)) b.push_back(n);
  if (op == "MatMul") {
    DType t = g.chance(5) ? g.oneOf({DType::I32, DType::I64, DType::U32}) : g.floatDType();
    return g.make(op, {g.value(t, a), g.value(t, b)});
  }
  DType ta = g.oneOf({DType::U8, DType::I8}), tb = g.oneOf({DType::U8, DType::I8});
  ValueId x = g.value(ta, a), y = g.value(tb, b);
  if (op == "MatMulInteger")
    return g.make(op, {x, y, g.chance(2) ? ValueId{} : scalar(g, ta, 3), g.chance(2) ? ValueId{} : scalar(g, tb, 2)});
  return g.make(op, {x, scalar(g, DType::F32, 0.1), scalar(g, ta, 2), y, scalar(g, DType::F32, 0.05), scalar(g, tb, 1),
                     scalar(g, DType::F32, 0.4), scalar(g, ta, 7)});
}

bool gemm(GraphMaker& g, const std::string& op) {
  int64_t m = 1 + g.pick(12), n = 1 + g.pick(12), k = 1 + g.pick(20), ta = g.pick(2), tb = g.pick(2);
  DType t = g.floatDType();
  Attrs a{{"transA", ta}, {"transB", tb}};
  g.maybe(a, "alpha", g.real(-2, 2));
  g.maybe(a, "beta", g.real(-2, 2));
  ValueId c = g.chance(3) ? ValueId{} : g.value(t, g.oneOf<Ints>({{m, n}, {n}, {1, n}, {m, 1}, {}, {1}}));
  return g.make(op, {g.value(t, ta ? Ints{k, m} : Ints{m, k}), g.value(t, tb ? Ints{n, k} : Ints{k, n}), c}, a);
}

bool einsum(GraphMaker& g, const std::string& op) {
  struct Case {
    const char* equation;
    std::vector<const char*> operands;
  };
  static const std::vector<Case> kCases = {{"ij,jk->ik", {"ij", "jk"}},
                                           {"bij,bjk->bik", {"bij", "bjk"}},
                                           {"ij->ji", {"ij"}},
                                           {"ii->i", {"ii"}},
                                           {"ij->", {"ij"}},
                                           {"bhid,bhjd->bhij", {"bhid", "bhjd"}},
                                           {"i,j->ij", {"i", "j"}},
                                           {"ij,ij->i", {"ij", "ij"}},
                                           {"ijk,kl,jl->il", {"ijk", "kl", "jl"}},
                                           {"...ij,...jk->...ik", {"bij", "bjk"}},
                                           {"ij,kj", {"ij", "kj"}},
                                           {"bij->bi", {"bij"}}};
  const Case& c = kCases[static_cast<size_t>(g.pick(static_cast<int64_t>(kCases.size())))];
  std::map<char, int64_t> extent;
  for (char ch : std::string("bhijkld")) extent[ch] = 1 + g.pick(5);
  DType t = g.chance(5) ? DType::I32 : g.floatDType();
  std::vector<ValueId> in;
  for (const char* names : c.operands) {
    Ints d;
    for (const char* p = names; *p; ++p) d.push_back(extent[*p]);
    in.push_back(g.value(t, d));
  }
  return g.make(op, in, {{"equation", std::string(c.equation)}});
}

bool pool(GraphMaker& g, const std::string& op) {
  Window w = window(g, 1 + g.pick(3));
  w.attrs["kernel_shape"] = w.kernel;
  g.maybe(w.attrs, "ceil_mode", g.pick(2));
  if (op == "AveragePool") g.maybe(w.attrs, "count_include_pad", g.pick(2));
  if (op == "LpPool") w.attrs["p"] = 1 + g.pick(3);
  if (op == "MaxPool") g.maybe(w.attrs, "storage_order", g.pick(2));
  DType t = op == "MaxPool" && g.chance(4) ? g.oneOf({DType::I8, DType::U8}) : g.floatDType();
  return g.make(op, {g.value(t, joined({1 + g.pick(2), 1 + g.pick(4)}, w.image))}, w.attrs, op == "MaxPool" ? 2 : 1);
}

bool unpool(GraphMaker& g, const std::string& op) {
  int64_t n = 1 + g.pick(2), c = 1 + g.pick(3), h = 1 + g.pick(3), w = 1 + g.pick(3);
  DType t = g.floatDType();
  // Places are those of the output, all channels and batches counted through.
  return g.make(op, {g.value(t, {n, c, h, w}), g.indices(DType::I64, {n, c, h, w}, 0, n * c * h * w * 4 - 1)},
                {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
}

bool col2im(GraphMaker& g, const std::string& op) {
  Ints image = {2 + g.pick(5), 2 + g.pick(5)}, block = {1 + g.pick(2), 1 + g.pick(2)};
  int64_t blocks = (image[0] - block[0] + 1) * (image[1] - block[1] + 1);
  return g.make(op, {g.value(g.floatDType(), {1 + g.pick(2), (1 + g.pick(3)) * block[0] * block[1], blocks}),
                     g.ints(image), g.ints(block)});
}

bool deformConv(GraphMaker& g, const std::string& op) {
  int64_t n = 1 + g.pick(2), c = 2 * (1 + g.pick(2)), k = 1 + g.pick(2), h = k + g.pick(4), w = k + g.pick(4);
  int64_t outs = 2 * (1 + g.pick(2)), oh = h - k + 1, ow = w - k + 1, og = 1 + g.pick(2), groups = 1 + g.pick(2);
  DType t = g.floatDType();
  return g.make(
      op,
      {g.value(t, {n, c, h, w}), g.value(t, {outs, c / groups, k, k}), g.value(t, {n, og * 2 * k * k, oh, ow}),
       maybeVector(g, t, outs), g.chance(2) ? ValueId{} : g.value(t, {n, og * k * k, oh, ow})},
      {{"kernel_shape", Ints{k, k}}, {"offset_group", og}, {"group", groups}});
}

bool resize(GraphMaker& g, const std::string& op) {
  ValueId x =
      g.chance(3) ? g.floating(1, 4) : g.value(g.numericDType(), {1, 1 + g.pick(3), 1 + g.pick(6), 1 + g.pick(6)});
  Ints sizes = g.dims(x);
  Attrs a{{"mode", std::string(g.oneOf({"nearest", "linear", "cubic"}))}};
  g.maybe(a, "coordinate_transformation_mode",
          std::string(
              g.oneOf({"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"})));
  g.maybe(a, "nearest_mode", std::string(g.oneOf({"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})));
  if (g.chance(4)) a["antialias"] = int64_t{1};
  if (g.chance(4)) a["exclude_outside"] = int64_t{1};
  if (g.chance(4)) a["cubic_coeff_a"] = -0.5;
  if (g.chance(2)) {
    for (size_t i = sizes.size() > 2 ? 2 : 0; i < sizes.size(); ++i) sizes[i] = 1 + g.pick(9);
    return g.make(op, {x, {}, {}, g.ints(sizes)}, a);
  }
  Tensor scales(DType::F32, {g.rank(x)});
  for (int64_t i = 0; i < scales.elements(); ++i)
    scales.setElement(i, g.rank(x) > 2 && i < 2 ? 1.0 : g.oneOf({1.0, 2.0, 0.5, 0.6, 1.7, 3.0}));
  return g.make(op, {x, {}, g.constant(scales)}, a);
}

bool gridSample(GraphMaker& g, const std::string& op) {
  DType t = g.floatDType();
  int64_t n = 1 + g.pick(2);
  bool volume = g.chance(4);
  Ints d = {n, 1 + g.pick(3), 1 + g.pick(5), 1 + g.pick(5)}, at = {n, 1 + g.pick(4), 1 + g.pick(4), 2};
  if (volume) {
    d.push_back(1 + g.pick(3));
    at.insert(at.begin() + 1, 1 + g.pick(3));
    at.back() = 3;
  }
  return g.make(op, {g.value(t, d), g.value(t, at)},
                {{"mode", std::string(g.oneOf({"linear", "nearest", "cubic"}))},
                 {"padding_mode", std::string(g.oneOf({"zeros", "border", "reflection"}))},
                 {"align_corners", g.pick(2)}});
}

bool roiAlign(GraphMaker& g, const std::string& op) {
  DType t = g.oneOf({DType::F32, DType::F32, DType::F64, DType::F16});
  int64_t n = 1 + g.pick(2), rois = 1 + g.pick(3);
  Attrs a{{"mode", std::string(g.oneOf({"avg", "max"}))},
          {"output_height", 1 + g.pick(3)},
          {"output_width", 1 + g.pick(3)},
          {"sampling_ratio", g.pick(3)},
          {"spatial_scale", g.real(0.3, 1)},
          {"coordinate_transformation_mode", std::string(g.oneOf({"half_pixel", "output_half_pixel"}))}};
  Tensor boxes(t, {rois, 4});
  for (int64_t i = 0; i < rois * 4; ++i) boxes.setElement(i, g.real(0, 3) + (i % 4 >= 2 ? 2 : 0));
  return g.make(op,
                {g.value(t, {n, 1 + g.pick(3), 3 + g.pick(5), 3 + g.pick(5)}), g.constant(boxes),
                 g.indices(DType::I64, {rois}, 0, n - 1)},
                a);
}

bool maxRoiPool(GraphMaker& g, const std::string& op) {
  DType t = g.oneOf({DType::F32, DType::F64, DType::F16});
  Tensor boxes(t, {2, 5});
  for (int64_t i = 0; i < 10; ++i)
    boxes.setElement(i, i % 5 == 0 ? 0 : std::floor(g.real(0, 3)) + (i % 5 >= 3 ? 2 : 0));
  return g.make(op, {g.value(t, {1, 1 + g.pick(3), 4 + g.pick(4), 4 + g.pick(4)}), g.constant(boxes)},
                {{"pooled_shape", Ints{1 + g.pick(3), 1 + g.pick(3)}}, {"spatial_scale", g.oneOf({1.0, 0.5})}});
}

}  // namespace

void addSpatialRecipes(std::vector<Recipe>& out) {
  out.push_back({{"MatMul", "MatMulInteger", "QLinearMatMul"}, matMul});
  out.push_back({{"Gemm"}, gemm});
  out.push_back({{"Einsum"}, einsum});
  out.push_back({{"Conv"}, conv});
  out.push_back({{"ConvTranspose"}, convTranspose});
  out.push_back({{"ConvInteger", "QLinearConv"}, quantisedConv});
  out.push_back({{"DeformConv"}, deformConv});
  out.push_back({{"MaxPool", "AveragePool", "LpPool"}, pool});
  out.push_back({{"MaxUnpool"}, unpool});
  out.push_back({{"Col2Im"}, col2im});
  out.push_back({{"Resize"}, resize});
  out.push_back({{"GridSample"}, gridSample});
  out.push_back({{"AffineGrid"}, [](GraphMaker& g, const std::string& op) {
                   int64_t n = 1 + g.pick(2);
                   bool volume = g.chance(3);
                   Ints size = {n, 1 + g.pick(3), 1 + g.pick(4), 1 + g.pick(4)};
                   if (volume) size.push_back(1 + g.pick(4));
                   return g.make(op, {g.value(g.floatDType(), {n, volume ? 3 : 2, volume ? 4 : 3}), g.ints(size)},
                                 {{"align_corners", g.pick(2)}});
                 }});
  out.push_back({{"RoiAlign"}, roiAlign});
  out.push_back({{"MaxRoiPool"}, maxRoiPool});
}

}  // namespace locution::fuzz
