// The text of constants and attributes: every bit of a float survives (NaN payloads and the sign of zero included), and an
// integer never turns into a float or back.
#pragma once

#include <string>

#include "graph/graph.h"
#include "support/text_cursor.h"

namespace locution::graph {

/// "1.0", "0.1", "-0.0", "inf", "nan", "nan:0x7ff8000000000001"; shortest that reads back to the same bits.
std::string floatText(double value);
/// "[1.0, 2.0]", a scalar without brackets; "#3f8a..." (its hash) above `maxElements` elements.
std::string elementsText(const Tensor& tensor, int64_t maxElements);
/// "3", "1.0", "\"text\"", "[1, 2]", "ints[]" (empty lists name their type), "tensor float32[2] [1.0, 2.0]", "tensor none"
std::string attrText(const Attr& attr, int64_t maxElements);
/// "tensor float32[2] [1.0, 2.0]"
std::string tensorText(const Tensor& tensor, int64_t maxElements);

/// The inverses. Errors: other text, values that don't fit, a hash instead of elements.
Result<Tensor> parseElements(TextCursor& in, DType dtype, const std::vector<int64_t>& dims);
Result<Tensor> parseTensor(TextCursor& in);
Result<Attr> parseAttr(TextCursor& in);

/// Names (of values, ops, attributes) that need no quotes.
bool isBareName(std::string_view name);
bool isBareNameChar(char c);

}  // namespace locution::graph
