// The text forms of dims, shapes and value types, read back: the inverse of their `str()`.
#pragma once

#include <string_view>

#include "core/shape.h"
#include "support/status.h"
#include "support/text_cursor.h"

namespace locution {

/// "3", "batch", "(2*h + 1) / 3", "max(h, \"odd name\")"
Result<Dim> parseDim(std::string_view text);
/// "1x3x224x224", "scalar", "batchx3", "(2*h)x3", "?"
Result<Shape> parseShape(std::string_view text);
/// "float32[1x3] layout(order 1,0)", "seq(float32[?])"
Result<ValueType> parseValueType(std::string_view text);

/// The same from the middle of a larger text.
Result<Dim> parseDim(TextCursor& in);
Result<Shape> parseShape(TextCursor& in);
Result<ValueType> parseValueType(TextCursor& in);

}  // namespace locution
