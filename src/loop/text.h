// What the printer and the parser of loop IR's text share: words, precedences, literals.
#pragma once

#include <string>
#include <string_view>

#include "loop/expr.h"

namespace locution::loop {

/// Of infix operators, in C's order: comparisons bind tighter than & ^ |. All associate to the left; comparisons don't chain.
int precedenceOf(BinaryOp op);
/// "add" of reduce_add(v).
std::string_view reduceName(BinaryOp op);
/// "float32", "float32x16"
std::string typeText(Type type);
/// "inf", "nan_float16"
bool isNonFinite(std::string_view word);
bool isReservedWord(std::string_view word);
/// A name made an identifier that is no reserved word.
std::string identifierText(const std::string& name);
/// int64 plain, other types with a suffix: 3, 3_int8, true
std::string intText(DType type, int64_t value);
/// float32 plain, other types with a suffix: 1.0, 0.5_float16, -inf, nan_float64
std::string floatText(DType type, double value);
/// The constant that such a text means; null when it means none, or none that its type holds.
Expr parseNumber(std::string_view text);

}  // namespace locution::loop
