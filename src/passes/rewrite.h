// What passes ask of a graph and how they put nodes into it, in one word each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/patch.h"
#include "ops/op.h"

namespace locution::passes {

using graph::Attrs;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Patch;
using graph::RegionId;
using graph::ValueId;

using Ints = std::vector<int64_t>;

/// The op's pattern; Host for an op that ops.inc doesn't list.
ops::Pattern patternOf(const Node& node);
/// Gives other results each time, or other ones than an equal node: never folded, never merged.
bool isRandom(const Graph& graph, const Node& node);
/// No String, no complex, no sequence; the shape may be dynamic.
bool isNumericTensor(const ValueType& type);

/// The extents when all are known.
std::optional<Ints> staticExtents(const ValueType& type);
inline std::optional<Ints> staticExtents(const Graph& graph, ValueId value) { return staticExtents(graph.type(value)); }
/// -1 when unknown.
int64_t rankOf(const Graph& graph, ValueId value);
/// Product; 1 for a scalar.
int64_t elementsOf(const Ints& dims);
/// Same dtype, same shape as far as symbols can tell.
bool sameType(const Graph& graph, ValueId a, ValueId b);

/// The number that every element of the constant is; nullopt for other values, for empty and for non-numeric ones.
std::optional<double> splatOf(const Graph& graph, ValueId value);
/// The integers of a constant integer input; nullopt when it is absent or not constant.
std::optional<Ints> constantInts(const Graph& graph, ValueId value);
/// Integers that older opsets keep in an attribute and newer ones in an input; nullopt when an input is there but not constant. An
/// empty list when neither is.
std::optional<Ints> intsOfInputOrAttr(const Graph& graph, const Node& node, size_t input, std::string_view attr);

/// The only node that reads the value, which is no region output; invalid otherwise.
NodeId soleUser(const Graph& graph, ValueId value);
/// The producer of input `i` when it is a node with this op; invalid otherwise.
NodeId producerIs(const Graph& graph, ValueId value, std::string_view op);

/// A node that carries on the name and source index of `origin`, inserted before `at`; its single output.
ValueId emitBefore(Patch& patch, NodeId at, NodeId origin, const std::string& op, std::vector<ValueId> inputs,
                   Attrs attrs, ValueType type);
ValueId addInts(Patch& patch, const std::string& stem, const Ints& values);
/// Reshape of `value` to `dims` before `at`; the value itself when it has these dims, a constant for a constant.
ValueId emitReshape(Patch& patch, NodeId at, NodeId origin, ValueId value, const Ints& dims);
/// Turns a node with one output into a Reshape of `source` to its output's static dims: the output keeps its name.
void becomeReshape(Patch& patch, NodeId node, ValueId source);
/// Some type names quantisation parameters: constants may be in use without users.
bool hasQuantisedTypes(const Graph& graph);
/// Every read of output `i` becomes `by`; the node goes when nothing else of it is used.
void replaceOutput(Patch& patch, NodeId node, ValueId by, size_t i = 0);

/// An If whose condition is constant: the nodes of the branch that is taken move to where it stands, and it goes. Returns them; nothing
/// when the node is no such If.
std::optional<std::vector<NodeId>> inlineDecidedIf(Patch& patch, NodeId node);

/// Transpose's permutation, given its input's rank (the default reverses); empty when the rank isn't known.
Ints permutationOf(const Graph& graph, const Node& transpose);
bool isIdentity(const Ints& perm);
Ints inverse(const Ints& perm);
/// Transposing by `first`, then by `second`.
Ints compose(const Ints& first, const Ints& second);
template <typename T>
std::vector<T> permuteList(const std::vector<T>& list, const Ints& perm) {
  std::vector<T> out;
  out.reserve(perm.size());
  for (int64_t p : perm) out.push_back(list[static_cast<size_t>(p)]);
  return out;
}
/// Only dims of extent 1 change their place: the bytes stay as they are.
bool movesUnitDimsOnly(const Ints& dims, const Ints& perm);

}  // namespace locution::passes
