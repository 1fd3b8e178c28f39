// Einsum: the equation is parsed into labels (the dims of an ellipsis get labels of their own), then operands are joined from left to
// right, each join one contraction over the labels that neither the output nor a later operand needs. A label that an operand repeats
// reads its diagonal.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/spatial.h"
#include "support/strings.h"

namespace locution::ops {

using loop::Expr;

namespace {

/// Letters stand for themselves; dim i of the ellipsis, counted from the end, is kEllipsis + i.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kEllipsis = 256;

struct Equation {
  std::vector<Labels> operands;
  Labels output;
};

std::string labelText(Label l) {
  return l < kEllipsis ? "'" + std::string(1, static_cast<char>(l)) + "'" : "ellipsis dim";
}

/// Labels of one term; `ellipsisRank`: how many dims "..." stands for.
Result<Labels> parseTerm(const std::string& term, int64_t ellipsisRank) {
  Labels labels;
  bool seen = false;
  for (size_t i = 0; i < term.size(); ++i) {
    char ch = term[i];
    if (ch == '.') {
      if (seen || term.compare(i, 3, "...") != 0) return Status::error("a misplaced '.' in the term " + quoted(term));
      seen = true;
      i += 2;
      for (int64_t d = ellipsisRank; d-- > 0;) labels.push_back(kEllipsis + static_cast<Label>(d));
    } else if ((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z')) {
      labels.push_back(ch);
    } else {
      return Status::error("the character " + quoted(std::string(1, ch)) + " in the term " + quoted(term));
    }
  }
  return labels;
}

int64_t lettersIn(const std::string& term) {
  return std::count_if(term.begin(), term.end(), [](char ch) { return ch != '.'; });
}

/// Ranks give the meaning of "...".
Result<Equation> parseEquation(std::string text, const std::vector<int64_t>& ranks) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  std::vector<std::string> terms = splitText(left, ',');
  if (terms.size() != ranks.size()) {
    return Status::error("the equation has " + std::to_string(terms.size()) + " terms, there are " +
                         std::to_string(ranks.size()) + " operands");
  }
  Equation e;
  int64_t widest = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    bool ellipsis = terms[i].find('.') != std::string::npos;
    int64_t rest = ranks[i] - lettersIn(terms[i]);
    if (rest < 0 || (!ellipsis && rest > 0)) {
      return Status::error("the term " + quoted(terms[i]) + " doesn't fit operand " + std::to_string(i) + " of rank " +
                           std::to_string(ranks[i]));
    }
    if (ellipsis) widest = std::max(widest, rest);
    LOCUTION_ASSIGN_OR_RETURN(Labels labels, parseTerm(terms[i], ellipsis ? rest : 0));
    e.operands.push_back(std::move(labels));
  }
  if (arrow != std::string::npos) {
    LOCUTION_ASSIGN_OR_RETURN(e.output, parseTerm(text.substr(arrow + 2), widest));
    for (size_t i = 0; i < e.output.size(); ++i) {
      if (std::count(e.output.begin(), e.output.end(), e.output[i]) > 1)
        return Status::error("the output repeats " + labelText(e.output[i]));
      bool known = std::any_of(e.operands.begin(), e.operands.end(),
                               [&](const Labels& o) { return std::find(o.begin(), o.end(), e.output[i]) != o.end(); });
      if (!known) return Status::error("the output names " + labelText(e.output[i]) + ", which no operand has");
    }
    return e;
  }
  // Without an output term: the ellipsis, then the letters that occur once, in alphabetical order.
  for (int64_t d = widest; d-- > 0;) e.output.push_back(kEllipsis + static_cast<Label>(d));
  std::map<Label, int> count;
  for (const Labels& o : e.operands) {
    for (Label l : o) ++count[l];
  }
  for (const auto& [label, n] : count) {
    if (label < kEllipsis && n == 1) e.output.push_back(label);
  }
  return e;
}

/// Extents of all labels; a dim of 1 gives way to any other.
Result<std::map<Label, Dim>> labelExtents(const Equation& e, const std::vector<Shape>& shapes) {
  std::map<Label, Dim> extents;
  for (size_t i = 0; i < e.operands.size(); ++i) {
    for (size_t d = 0; d < e.operands[i].size(); ++d) {
      Label label = e.operands[i][d];
      const Dim& dim = shapes[i][static_cast<int64_t>(d)];
      auto [it, fresh] = extents.emplace(label, dim);
      if (fresh || it->second == dim || dim == Dim(1)) continue;
      if (it->second == Dim(1) || (!it->second.isKnown() && dim.isKnown())) {
        it->second = dim;
      } else if (it->second.isKnown() && dim.isKnown()) {
        return Status::error("operand " + std::to_string(i) + " has " + dim.str() + " elements at " + labelText(label) +
                             ", another has " + it->second.str());
      }
    }
  }
  return extents;
}

bool contains(const Labels& labels, Label l) { return std::find(labels.begin(), labels.end(), l) != labels.end(); }

/// A tensor in the course of the joins.
struct Operand {
  loop::BufferRef buffer;
  Labels labels;
  Expr load(const std::map<Label, Expr>& index) const {
    std::vector<Expr> indices;
    std::vector<int64_t> dims = loop::extents(*buffer);
    for (size_t d = 0; d < labels.size(); ++d) indices.push_back(dims[d] == 1 ? loop::index(0) : index.at(labels[d]));
    return loop::load(buffer, indices);
  }
};

}  // namespace

Status inferEinsum(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, std::max<size_t>(1, c.inputCount())));
  std::vector<size_t> all;
  std::vector<Shape> shapes;
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < c.inputCount(); ++i) {
    all.push_back(i);
    shapes.push_back(c.input(i).shape);
    ranks.push_back(shapes.back().rank());
  }
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, all));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isNumeric, "a numeric type"));
  if (std::any_of(shapes.begin(), shapes.end(), [](const Shape& s) { return !s.isRanked(); })) {
    c.setOutput(0, c.input(0).dtype, Shape::unranked());
    return Status::ok();
  }
  LOCUTION_ASSIGN_OR_RETURN(Equation e, parseEquation(c.node().stringAttr("equation", ""), ranks));
  LOCUTION_ASSIGN_OR_RETURN(auto extents, labelExtents(e, shapes));
  std::vector<Dim> dims;
  for (Label l : e.output) dims.push_back(extents.at(l));
  c.setOutput(0, c.input(0).dtype, Shape(dims));
  return Status::ok();
}

Status computeEinsum(ComputeContext& c) {
  std::vector<Shape> shapes;
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < c.inputCount(); ++i) {
    shapes.push_back(c.input(i).shape);
    ranks.push_back(shapes.back().rank());
  }
  LOCUTION_ASSIGN_OR_RETURN(Equation e, parseEquation(c.node().stringAttr("equation", ""), ranks));
  LOCUTION_ASSIGN_OR_RETURN(auto extents, labelExtents(e, shapes));
  DType type = c.output(0).dtype, accumulator = accumulatorType(type);

  Operand joined{c.inputBuffer(0), e.operands[0]};
  for (size_t next = 1; next < std::max<size_t>(2, e.operands.size()); ++next) {
    bool binary = next < e.operands.size(), last = next + 1 >= e.operands.size();
    std::vector<Operand> sides;
    sides.push_back(joined);
    if (binary) sides.push_back({c.inputBuffer(next), e.operands[next]});
    // What stays: the output's labels, or in the middle those that something later needs.
    Labels keep = last ? e.output : Labels{}, reduce;
    for (const Operand& side : sides) {
      for (Label l : side.labels) {
        if (contains(keep, l) || contains(reduce, l)) continue;
        bool needed = contains(e.output, l);
        for (size_t later = next + 1; later < e.operands.size(); ++later)
          needed = needed || contains(e.operands[later], l);
        (needed ? keep : reduce).push_back(l);
      }
    }
    std::vector<int64_t> keepExtents;
    std::map<Label, Expr> index;
    loop::Stage stage;
    for (Label l : keep) keepExtents.push_back(extents.at(l).value());
    LOCUTION_RETURN_IF_ERROR(checkElements(keepExtents, "an intermediate result"));
    stage.axes = makeAxes(keepExtents);
    for (size_t i = 0; i < keep.size(); ++i) index[keep[i]] = stage.axes[i].var;
    for (Label l : reduce) {
      stage.reduce.push_back({loop::makeVar("r" + std::to_string(stage.reduce.size())), extents.at(l).value()});
      index[l] = stage.reduce.back().var;
    }
    stage.out = last ? c.outputBuffer(0) : c.temporary("joined", accumulator, keepExtents);
    stage.body = castTo(accumulator, sides[0].load(index));
    if (binary) stage.body = stage.body * castTo(accumulator, sides[1].load(index));
    DType outType = last ? type : accumulator;
    if (stage.reduce.empty()) {
      stage.body = castTo(outType, stage.body);
    } else {
      stage.combiner = loop::Combiner::Sum;
      if (outType != accumulator) {
        stage.acc = loop::makeVar("acc", {accumulator, 1});
        stage.epilogue = castTo(outType, stage.acc);
      }
    }
    joined = {stage.out, keep};
    c.addStage(std::move(stage));
  }
  return Status::ok();
}

}  // namespace locution::ops
