// What the ONNX specification says of each operator's signature, opset by opset (onnx_ops.inc), and the function that brings a
// node of that signature into internal form.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/status.h"

namespace locution::frontend {

class NodeContext;

constexpr int64_t kOldestOpset = 7;
constexpr int64_t kNewestOpset = 27;
constexpr int64_t kNewestIrVersion = 13;

/// One row of onnx_ops.inc.
struct OpRow {
  std::string_view domain;  ///< "" for ai.onnx
  std::string_view name;
  int64_t since;  ///< the row holds from this opset to the next row of the same operator
  Status (*normalise)(NodeContext&);
  std::string_view inputs;  ///< "X W B?": '?' optional, '*' any number (last)
  std::string_view outputs;
  std::string_view attributes;  ///< "axis:i to:d!": '!' required; f i s t g sp tp, fs is ss: lists, d: a data type
};

std::span<const OpRow> allRows();
/// The row of an operator at an opset; nullptr when there is none. `firstSince` is set to the operator's first opset, 0 when
/// the operator isn't known at all.
const OpRow* findRow(std::string_view domain, std::string_view name, int64_t opset, int64_t& firstSince);
/// "ai.onnx" and "" are one.
std::string_view canonicalDomain(std::string_view domain);

struct AttrSpec {
  std::string_view name;
  std::string_view type;  ///< "i", "fs", "d", ...
  bool required = false;
};
std::vector<AttrSpec> attrSpecs(const OpRow& row);

/// Checks how many inputs and outputs a node gives ("" counts as left out) against the row. The message names what is missing.
Status checkArity(const OpRow& row, const std::vector<bool>& inputs, size_t outputs);

}  // namespace locution::frontend
