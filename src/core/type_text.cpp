// Recursive descent over TextCursor; the grammar is what `str()` of Dim, Shape, Layout and ValueType writes.
#include "core/type_text.h"

#include <cctype>
#include <string>

namespace locution {
namespace {

bool isDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

class DimParser {
 public:
  explicit DimParser(TextCursor& in) : in_(in) {}

  Result<Dim> sum() {
    if (++depth_ > kMaxParseDepth) return in_.fail("a dim nested too deeply");
    LOCUTION_ASSIGN_OR_RETURN(Dim out, product());
    for (;;) {
      if (in_.eat("+")) {
        LOCUTION_ASSIGN_OR_RETURN(Dim right, product());
        out = out + right;
      } else if (in_.eat("-")) {
        LOCUTION_ASSIGN_OR_RETURN(Dim right, product());
        out = out - right;
      } else {
        --depth_;
        return out;
      }
    }
  }

  /// What may stand in a shape without parentheses; `x` separates dims there and ends a symbol.
  Result<Dim> shapeItem() {
    char c = in_.peek();
    if (c == '(') return primary();
    if (c == '"') return quotedSymbol();
    if (c == '-' || isDigit(c)) return number();
    std::string_view name = in_.word([](char ch) { return isDimNameChar(ch) && ch != 'x'; });
    if (!isDimName(name)) return in_.fail("expected a dim");
    return Dim::symbol(std::string(name));
  }

 private:
  Result<Dim> product() {
    LOCUTION_ASSIGN_OR_RETURN(Dim out, factor());
    for (;;) {
      if (in_.eat("*")) {
        LOCUTION_ASSIGN_OR_RETURN(Dim right, factor());
        out = out * right;
      } else if (in_.eat("/")) {
        LOCUTION_ASSIGN_OR_RETURN(Dim right, factor());
        if (right == Dim(0)) return in_.fail("division by zero");
        out = floorDiv(out, right);
      } else {
        return out;
      }
    }
  }

  Result<Dim> factor() {
    if (in_.peek() != '-') return primary();
    size_t sign = in_.position();
    in_.eat("-");
    if (isDigit(in_.peek())) {
      in_.rewind(sign);
      return number();
    }
    if (++depth_ > kMaxParseDepth) return in_.fail("a dim nested too deeply");
    LOCUTION_ASSIGN_OR_RETURN(Dim value, factor());
    --depth_;
    return Dim(0) - value;
  }

  Result<Dim> primary() {
    if (in_.eat("(")) {
      LOCUTION_ASSIGN_OR_RETURN(Dim value, sum());
      LOCUTION_RETURN_IF_ERROR(in_.expect(")"));
      return value;
    }
    char c = in_.peek();
    if (c == '"') return quotedSymbol();
    if (isDigit(c)) return number();
    std::string name(in_.word(isDimNameChar));
    if ((name == "max" || name == "min" || name == "ceildiv") && in_.eat("(")) return call(name);
    if (!isDimName(name)) return in_.fail("expected a dim");
    return Dim::symbol(name);
  }

  Result<Dim> call(const std::string& name) {
    LOCUTION_ASSIGN_OR_RETURN(Dim a, sum());
    LOCUTION_RETURN_IF_ERROR(in_.expect(","));
    LOCUTION_ASSIGN_OR_RETURN(Dim b, sum());
    LOCUTION_RETURN_IF_ERROR(in_.expect(")"));
    if (name == "max") return maxDim(a, b);
    if (name == "min") return minDim(a, b);
    if (b == Dim(0)) return in_.fail("division by zero");
    return ceilDiv(a, b);
  }

  Result<Dim> number() {
    LOCUTION_ASSIGN_OR_RETURN(int64_t value, in_.integer());
    return Dim(value);
  }
  Result<Dim> quotedSymbol() {
    LOCUTION_ASSIGN_OR_RETURN(std::string name, in_.quotedText());
    return Dim::symbol(name);
  }

  TextCursor& in_;
  int depth_ = 0;
};

Status parseLayout(TextCursor& in, Layout& layout) {
  LOCUTION_RETURN_IF_ERROR(in.expect("("));
  if (in.eat("order")) {
    do {
      LOCUTION_ASSIGN_OR_RETURN(int64_t dim, in.integer());
      layout.order.push_back(dim);
    } while (in.eat(","));
  }
  if (in.eat("block")) {
    LOCUTION_ASSIGN_OR_RETURN(layout.blockedDim, in.integer());
    LOCUTION_RETURN_IF_ERROR(in.expect("/"));
    LOCUTION_ASSIGN_OR_RETURN(layout.block, in.integer());
  }
  return in.expect(")");
}

Status parseQuantisation(TextCursor& in, Quantisation& q) {
  LOCUTION_RETURN_IF_ERROR(in.expect("("));
  LOCUTION_RETURN_IF_ERROR(in.expect("scale"));
  LOCUTION_ASSIGN_OR_RETURN(q.scale, in.quotedText());
  if (in.eat("zero")) {
    LOCUTION_ASSIGN_OR_RETURN(q.zeroPoint, in.quotedText());
  }
  if (in.eat("axis")) {
    LOCUTION_ASSIGN_OR_RETURN(q.axis, in.integer());
  }
  if (in.eat("block")) {
    LOCUTION_ASSIGN_OR_RETURN(q.block, in.integer());
  }
  return in.expect(")");
}

template <typename T>
Result<T> parseWhole(std::string_view text, Result<T> (*parse)(TextCursor&)) {
  TextCursor in(text);
  Result<T> out = parse(in);
  if (out.isOk() && !in.atEnd()) return in.fail("expected the end");
  return out;
}

}  // namespace

Result<Dim> parseDim(TextCursor& in) { return DimParser(in).sum(); }

Result<Shape> parseShape(TextCursor& in) {
  if (in.eat("?")) return Shape::unranked();
  if (in.eat("scalar")) return Shape();
  std::vector<Dim> dims;
  DimParser parser(in);
  do {
    LOCUTION_ASSIGN_OR_RETURN(Dim dim, parser.shapeItem());
    dims.push_back(std::move(dim));
    // Not `eat`: the `x` is followed by the next dim without a gap.
  } while (!in.word([first = true](char c) mutable { return c == 'x' && std::exchange(first, false); }).empty());
  return Shape(std::move(dims));
}

Result<ValueType> parseValueType(TextCursor& in) {
  ValueType out;
  if (in.eat("seq("))
    out.kind = ValueKind::Sequence;
  else if (in.eat("opt("))
    out.kind = ValueKind::Optional;
  std::string_view name = in.word([](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
  auto dtype = parseDType(name);
  if (!dtype) return in.fail("expected an element type, not '" + std::string(name) + "'");
  out.dtype = *dtype;
  LOCUTION_RETURN_IF_ERROR(in.expect("["));
  LOCUTION_ASSIGN_OR_RETURN(out.shape, parseShape(in));
  LOCUTION_RETURN_IF_ERROR(in.expect("]"));
  if (in.eat("layout")) LOCUTION_RETURN_IF_ERROR(parseLayout(in, out.layout));
  if (in.eat("quant")) LOCUTION_RETURN_IF_ERROR(parseQuantisation(in, out.quantisation.emplace()));
  if (out.kind != ValueKind::Tensor) LOCUTION_RETURN_IF_ERROR(in.expect(")"));
  return out;
}

Result<Dim> parseDim(std::string_view text) { return parseWhole<Dim>(text, &parseDim); }
Result<Shape> parseShape(std::string_view text) { return parseWhole<Shape>(text, &parseShape); }
Result<ValueType> parseValueType(std::string_view text) { return parseWhole<ValueType>(text, &parseValueType); }

}  // namespace locution
