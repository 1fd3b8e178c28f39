// Types of host and control operators.
#include "ops/node_case.h"

namespace locution::ops {
namespace {

ValueType f32(Shape s) { return typeOf(DType::F32, std::move(s)); }
ValueType strings(Shape s) { return typeOf(DType::String, std::move(s)); }
ValueType sequence(ValueType element) {
  element.kind = ValueKind::Sequence;
  return element;
}

/// The text of every output, or the error.
std::string types(const std::string& op, std::vector<NodeInput> inputs, graph::Attrs attrs = {}, size_t outputs = 1) {
  std::set<size_t> constants;
  for (size_t i = 0; i < inputs.size(); ++i) constants.insert(i);
  NodeCase node(op, std::move(inputs), std::move(attrs), std::vector<bool>(outputs, true), constants);
  Status s = node.infer();
  if (!s.isOk()) return "error: " + s.message();
  std::string out;
  for (size_t i = 0; i < outputs; ++i) out += (i ? " " : "") + node.output(i).str();
  return out;
}

/// Rank and known dims only: fresh symbols are written as "_".
std::string outline(const std::string& op, std::vector<NodeInput> inputs, graph::Attrs attrs = {}, size_t outputs = 1) {
  std::set<size_t> constants;
  for (size_t i = 0; i < inputs.size(); ++i) constants.insert(i);
  NodeCase node(op, std::move(inputs), std::move(attrs), std::vector<bool>(outputs, true), constants);
  Status s = node.infer();
  if (!s.isOk()) return "error: " + s.message();
  std::string out;
  for (size_t i = 0; i < outputs; ++i) {
    ValueType t = node.output(i);
    if (i) out += " ";
    if (t.kind == ValueKind::Sequence) out += "seq ";
    if (t.kind == ValueKind::Optional) out += "optional ";
    out += std::string(dtypeName(t.dtype));
    if (!t.shape.isRanked()) out += " ?";
    for (const Dim& d : t.shape.dims())
      out += " " + (d.isKnown() ? d.str() : d.str().find('%') != std::string::npos ? "_" : d.str());
  }
  return out;
}

TEST(HostInfer, DataDependentExtents) {
  Dim n = Dim::symbol("n");
  EXPECT_EQ(outline("NonZero", {f32({2, 3})}), "int64 2 _");
  EXPECT_EQ(outline("NonZero", {f32(Shape::unranked())}), "int64 _ _");
  EXPECT_EQ(outline("Unique", {f32({2, 3})}, {}, 4), "float32 _ int64 _ int64 6 int64 _");
  EXPECT_EQ(outline("Unique", {f32({2, n})}, {{"axis", integer(-1)}}, 4), "float32 2 _ int64 _ int64 n int64 _");
  EXPECT_EQ(outline("NonMaxSuppression", {f32({1, 6, 4}), f32({1, 2, 6})}), "int64 _ 3");
  EXPECT_EQ(outline("Compress", {f32({2, 3}), typeOf(DType::Bool, {2})}, {{"axis", integer(0)}}), "float32 _ 3");
  EXPECT_EQ(outline("Compress", {f32({2, 3}), typeOf(DType::Bool, {6})}), "float32 _");
  EXPECT_EQ(types("TopK", {f32({2, 7}), Tensor::vectorI64({3})}, {}, 2), "float32[2x3] int64[2x3]");
  EXPECT_EQ(outline("TopK", {f32({2, 7}), typeOf(DType::I64, {1})}, {{"axis", integer(0)}}, 2),
            "float32 _ 7 int64 _ 7");
}

TEST(HostInfer, Strings) {
  EXPECT_EQ(types("StringConcat", {strings({2, 1}), strings({3})}), "string[2x3]");
  EXPECT_EQ(outline("StringSplit", {strings({2})}, {}, 2), "string 2 _ int64 2");
  EXPECT_EQ(types("RegexFullMatch", {strings({2, 3})}), "bool[2x3]");
  EXPECT_EQ(outline("StringNormalizer", {strings({1, 3})}), "string 1 _");
  EXPECT_EQ(types("TfIdfVectorizer", {strings({4, 5})}, {{"ngram_indexes", ints({0, 6, 2})}}), "float32[4x7]");
  EXPECT_EQ(types("StringConcat", {strings({2}), f32({2})}).substr(0, 6), "error:");
}

TEST(HostInfer, Random) {
  EXPECT_EQ(types("RandomNormal", {}, {{"shape", ints({2, 3})}, {"dtype", integer(11)}}), "float64[2x3]");
  EXPECT_EQ(types("RandomUniformLike", {typeOf(DType::F16, {4})}), "float16[4]");
  EXPECT_EQ(types("Bernoulli", {f32({4})}, {{"dtype", integer(9)}}), "bool[4]");
  EXPECT_EQ(types("Multinomial", {f32({4, 9})}, {{"sample_size", integer(5)}}), "int32[4x5]");
  EXPECT_EQ(types("RandomNormal", {}, {{"shape", ints({2, -3})}}), "error: attribute shape has the entry -3");
  EXPECT_EQ(types("RandomUniform", {}, {{"shape", ints({int64_t{1} << 40, int64_t{1} << 40})}}).substr(0, 6), "error:");
  EXPECT_EQ(types("Det", {f32({5, 3, 3})}), "float32[5]");
}

TEST(HostInfer, Sequences) {
  EXPECT_EQ(outline("SequenceConstruct", {f32({2, 3}), f32({2, 4})}), "seq float32 2 _");
  EXPECT_EQ(outline("SequenceConstruct", {f32({2, 3}), f32({4})}), "seq float32 ?");
  EXPECT_EQ(types("SequenceEmpty", {}, {{"dtype", integer(7)}}), "seq(int64[?])");
  EXPECT_EQ(outline("SequenceInsert", {sequence(f32({2, 3})), f32({2, 3})}), "seq float32 2 3");
  EXPECT_EQ(outline("SequenceAt", {sequence(f32({2, Dim::symbol("n")})), Tensor::scalarI64(0)}), "float32 2 _");
  EXPECT_EQ(types("SequenceLength", {sequence(f32({2}))}), "int64[scalar]");
  EXPECT_EQ(outline("ConcatFromSequence", {sequence(f32({2, 3}))}, {{"axis", integer(1)}}), "float32 2 _");
  EXPECT_EQ(outline("ConcatFromSequence", {sequence(f32({2, 3}))}, {{"axis", integer(-1)}, {"new_axis", integer(1)}}),
            "float32 2 3 _");
  EXPECT_EQ(outline("SplitToSequence", {f32({6, 3})}), "seq float32 1 3");
  EXPECT_EQ(outline("SplitToSequence", {f32({6, 3})}, {{"keepdims", integer(0)}}), "seq float32 3");
  EXPECT_EQ(outline("SplitToSequence", {f32({6, 3}), Tensor::scalarI64(2)}), "seq float32 2 3");
  EXPECT_EQ(outline("SplitToSequence", {f32({6, 3}), Tensor::scalarI64(4)}), "seq float32 _ 3");
  EXPECT_EQ(types("SplitToSequence", {f32({6, 3}), Tensor::vectorI64({4, 1})}),
            "error: the entries of split sum to 5, the axis has 6 elements");
  EXPECT_EQ(types("SequenceAt", {f32({2}), Tensor::scalarI64(0)}),
            "error: input 0: expected a sequence, got float32[2]");
  EXPECT_EQ(outline("Optional", {f32({2})}), "float32 2");
  EXPECT_EQ(outline("Optional", {}), "optional float32 ?");
  EXPECT_EQ(types("OptionalHasElement", {f32({2})}), "bool[scalar]");
}

TEST(HostInfer, Errors) {
  EXPECT_EQ(types("TopK", {f32({2, 7}), Tensor::vectorI64({8})}, {}, 2), "error: K is 8, the axis has 7 elements");
  EXPECT_EQ(types("TopK", {f32(Shape{}), Tensor::vectorI64({1})}, {}, 2),
            "error: the input is a scalar, expected at least one dim");
  EXPECT_EQ(types("NonMaxSuppression", {f32({1, 6, 5}), f32({1, 2, 6})}).substr(0, 6), "error:");
  EXPECT_EQ(types("Unique", {f32({2, 3})}, {{"axis", integer(2)}}).substr(0, 6), "error:");
  EXPECT_EQ(types("TfIdfVectorizer", {strings({4})}, {{"ngram_indexes", ints({-1})}}).substr(0, 6), "error:");
  EXPECT_EQ(types("Det", {f32({3, 4})}).substr(0, 6), "error:");
}

std::string build(const std::string& op, const std::vector<std::vector<ValueType>>& regionOutputs,
                  std::vector<ValueType> inputs, size_t outputs, graph::Attrs attrs = {},
                  const std::vector<size_t>& regionInputs = {}) {
  graph::Graph g;
  graph::Patch patch(g);
  std::vector<graph::ValueId> ids;
  for (size_t i = 0; i < inputs.size(); ++i)
    ids.push_back(patch.addInput(g.mainRegion(), "in" + std::to_string(i), inputs[i]));
  graph::NodeId node =
      patch.append(g.mainRegion(), {op, ids, std::move(attrs), std::vector<ValueType>(outputs), {}, {}, -1});
  for (size_t r = 0; r < regionOutputs.size(); ++r) {
    graph::RegionId region = patch.addRegion(node);
    for (size_t i = 0; r < regionInputs.size() && i < regionInputs[r]; ++i)
      patch.addInput(region, "p" + std::to_string(i), typeOf(DType::F32, {}));
    std::vector<graph::ValueId> results;
    for (const ValueType& t : regionOutputs[r]) {
      graph::NodeId inner = patch.append(region, {"Identity", {ids[0]}, {}, {t}, {}, {}, -1});
      results.push_back(patch.output(inner));
    }
    patch.setRegionOutputs(region, results);
  }
  KnownDims known;
  Result<InferredTypes> types = inferNode(g, node, known);
  if (!types.isOk()) return "error: " + types.status().message();
  std::string out;
  for (const auto& t : *types) {
    out += (out.empty() ? "" : ", ") + std::string(dtypeName(t->dtype));
    if (t->kind == ValueKind::Sequence) out += " seq";
    if (!t->shape.isRanked()) out += " ?";
    for (const Dim& d : t->shape.dims())
      out += " " + (d.isKnown() ? d.str() : d.str().find('%') != std::string::npos ? "_" : d.str());
  }
  return out;
}

TEST(ControlInfer, If) {
  ValueType condition = typeOf(DType::Bool, {});
  EXPECT_EQ(build("If", {{f32({2, 3})}, {f32({2, 3})}}, {condition}, 1), "float32 2 3");
  EXPECT_EQ(build("If", {{f32({2, 3})}, {f32({2, 4})}}, {condition}, 1), "float32 2 _");
  EXPECT_EQ(build("If", {{f32({2, 3})}, {f32({3})}}, {condition}, 1), "float32 ?");
  EXPECT_EQ(build("If", {{f32({2})}, {typeOf(DType::I64, {2})}}, {condition}, 1),
            "error: output 0 is float32[2] in one place, int64[2] in another");
  EXPECT_EQ(build("If", {{f32({2})}, {f32({2})}}, {condition}, 2), "error: the node has 2 outputs, its body gives 1");
  EXPECT_EQ(build("If", {{f32({2})}}, {condition}, 1), "error: region 1 is missing");
  EXPECT_EQ(build("If", {{f32({2})}, {f32({2})}}, {f32({})}, 1).substr(0, 6), "error:");
}

TEST(ControlInfer, LoopAndScan) {
  ValueType trips = typeOf(DType::I64, {}), condition = typeOf(DType::Bool, {});
  EXPECT_EQ(build("Loop", {{condition, f32({2, 3}), f32({5})}}, {trips, condition, f32({2, 3})}, 2, {}, {3}),
            "float32 2 3, float32 _ 5");
  EXPECT_EQ(build("Loop", {{condition, f32({2, 4})}}, {trips, condition, f32({2, 3})}, 1, {}, {3}), "float32 2 _");
  EXPECT_EQ(build("Loop", {{condition}}, {trips, condition, f32({2, 3})}, 1, {}, {3}),
            "error: the body gives 1 values, expected the condition and 1 of the state");
  EXPECT_EQ(build("Scan", {{f32({2}), f32({3})}}, {f32({2}), f32({9, 4})}, 2, {{"num_scan_inputs", integer(1)}}, {2}),
            "float32 2, float32 9 3");
  EXPECT_EQ(
      build("Scan", {{f32({2}), f32({3})}}, {f32({2}), f32({9, 4})}, 2,
            {{"num_scan_inputs", integer(1)}, {"scan_input_axes", ints({1})}, {"scan_output_axes", ints({-1})}}, {2}),
      "float32 2, float32 3 4");
  EXPECT_EQ(build("Scan", {{f32({2})}}, {f32({2})}, 1, {{"num_scan_inputs", integer(3)}}),
            "error: attribute num_scan_inputs is 3, there are 1 inputs");
}

TEST(ControlInfer, LoopCountsItsTrips) {
  // The body hands its condition on, so the trip count alone ends the loop.
  auto scanned = [](bool constantCondition) {
    graph::Graph g;
    graph::Patch patch(g);
    graph::ValueId trips = patch.addConstant("trips", Tensor::scalarI64(4)),
                   x = patch.addInput(g.mainRegion(), "x", f32({2}));
    Tensor yes(DType::Bool, {});
    yes.setElementInt(0, 1);
    graph::ValueId go = constantCondition ? patch.addConstant("go", yes)
                                          : patch.addInput(g.mainRegion(), "go", typeOf(DType::Bool, {}));
    graph::NodeId node =
        patch.append(g.mainRegion(), {"Loop", {trips, go, x}, {}, std::vector<ValueType>(2), {}, {}, -1});
    graph::RegionId body = patch.addRegion(node);
    patch.addInput(body, "i", typeOf(DType::I64, {}));
    graph::ValueId condition = patch.addInput(body, "c", typeOf(DType::Bool, {})),
                   state = patch.addInput(body, "s", f32({2}));
    graph::NodeId same = patch.append(body, {"Identity", {condition}, {}, {typeOf(DType::Bool, {})}, {}, {}, -1});
    patch.setRegionOutputs(body, {patch.output(same), state, state});
    KnownDims known;
    Result<InferredTypes> types = inferNode(g, node, known);
    EXPECT_TRUE(types.isOk()) << types.status().message();
    return types.isOk() ? (*types)[1]->shape : Shape{};
  };
  EXPECT_EQ(scanned(true).str(), "4x2");
  EXPECT_FALSE(scanned(false).isStatic());
}

TEST(ControlInfer, SequenceMapAndKernel) {
  EXPECT_EQ(build("SequenceMap", {{f32({2}), f32({3})}}, {sequence(f32({4}))}, 2, {}, {1}),
            "float32 seq 2, float32 seq 3");
  EXPECT_EQ(build("Kernel", {{f32({2}), f32({3})}}, {f32({4})}, 2), "float32 2, float32 3");
}

}  // namespace
}  // namespace locution::ops
