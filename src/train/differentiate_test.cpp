// Every gradient in the table against finite differences of the operator itself, in float64 in the interpreter.
#include "train/differentiate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/builder.h"
#include "ops/gradient.h"
#include "passes/reference_run.h"
#include "train/gradient_cases.h"

namespace locution::train {
namespace {

using graph::ValueId;
using ops::Builder;
using ops::Term;

/// A node, and the weighted sum of everything float that comes out of it.
struct Scalar {
  graph::Graph graph;
  std::vector<ValueId> wanted;
  std::vector<Tensor> inputs;  // of the graph
  ValueId loss;

  Scalar(const std::string& op, const GradientCase& c) {
    graph::Patch patch(graph);
    Builder b(patch);
    std::vector<Term> terms;
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      const Tensor& t = c.inputs[i];
      if (!t.isValid()) {
        terms.emplace_back();
      } else if (c.constants.contains(i)) {
        terms.push_back(b.constant(t));
      } else {
        terms.push_back(b.of(patch.addInput(graph.mainRegion(), "x", {t.dtype(), t.shape()})));
        inputs.push_back(t);
        if (isFloat(t.dtype())) wanted.push_back(terms.back().id());
      }
    }
    Term sum;
    uint64_t seed = 100;
    for (const Term& y : b.nodes(op, terms, c.attrs, c.outputs)) {
      if (!isFloat(y.dtype())) continue;
      Term part = reduce("ReduceSum", y * b.constant(numbers(y.dims(), -1, 1, ++seed)), all(y), false);
      sum = sum ? sum + part : part;
    }
    loss = sum.id();
    patch.setRegionOutputs(graph.mainRegion(), {loss});
  }
  static std::vector<int64_t> all(const Term& y) {
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < y.rank(); ++i) axes.push_back(i);
    return axes;
  }
  double at(const std::vector<Tensor>& given) const {
    Result<std::vector<Tensor>> out = passes::ReferenceRun(graph).run(given);
    EXPECT_TRUE(out.isOk()) << out.status().message();
    return out.isOk() ? (*out)[0].elementAsDouble(0) : NAN;
  }
};

Tensor copyOf(const Tensor& t) {
  Tensor out(t.dtype(), t.dims());
  for (int64_t i = 0; i < t.elements(); ++i) out.setElementBits(i, t.elementBits(i));
  return out;
}

void check(const std::string& op, const GradientCase& c) {
  const Scalar forward(op, c);
  Scalar s(op, c);
  graph::Patch patch(s.graph);
  Result<std::vector<ValueId>> gradients = differentiate(patch, s.loss, s.wanted);
  ASSERT_TRUE(gradients.isOk()) << gradients.status().message();
  patch.setRegionOutputs(s.graph.mainRegion(), *gradients);
  ASSERT_TRUE(graph::verify(s.graph).isOk()) << graph::verify(s.graph).message();
  Result<std::vector<Tensor>> got = passes::ReferenceRun(s.graph).run(s.inputs);
  ASSERT_TRUE(got.isOk()) << got.status().message() << "\n" << graph::print(s.graph);
  constexpr double kStep = 1e-5;
  size_t which = 0;
  for (size_t k = 0; k < s.inputs.size(); ++k) {
    if (!isFloat(s.inputs[k].dtype())) continue;
    const Tensor& gradient = (*got)[which++];
    ASSERT_EQ(gradient.dims(), s.inputs[k].dims());
    for (int64_t i = 0; i < gradient.elements(); ++i) {
      std::vector<Tensor> moved = forward.inputs;
      moved[k] = copyOf(moved[k]);
      const double x = moved[k].elementAsDouble(i);
      moved[k].setElement(i, x + kStep);
      const double above = forward.at(moved);
      moved[k].setElement(i, x - kStep);
      const double below = forward.at(moved), want = (above - below) / (2 * kStep), is = gradient.elementAsDouble(i);
      EXPECT_NEAR(is, want, 1e-8 * std::max(1.0, std::abs(want))) << op << ", input " << k << ", element " << i;
    }
  }
}

TEST(Gradients, EveryOneAgreesWithFiniteDifferences) {
  for (const auto& [op, c] : gradientCases()) {
    SCOPED_TRACE(op);
    check(op, c);
  }
}

TEST(Gradients, EveryOneIsChecked) {
  for (const ops::GradientDef& def : ops::allGradients()) {
    EXPECT_TRUE(gradientCases().contains(std::string(def.op))) << def.op << " has no case in gradient_cases_test.cpp";
    EXPECT_NE(ops::findOp(def.op), nullptr) << def.op;
  }
}

struct Small {
  graph::Graph graph;
  graph::Patch patch{graph};
  Builder b{patch};
  Term input(const std::string& name, std::vector<int64_t> dims, DType type = DType::F64) {
    return b.of(patch.addInput(graph.mainRegion(), name, {type, Shape::of(dims)}));
  }
};

TEST(Differentiate, AddsWhatComesBackAlongSeveralWays) {
  Small s;
  Term x = s.input("x", {3});
  Term loss = reduce("ReduceSum", x * x + call("Exp", x), {0}, false);
  auto g = differentiate(s.patch, loss.id(), {x.id()});
  ASSERT_TRUE(g.isOk());
  s.patch.setRegionOutputs(s.graph.mainRegion(), *g);
  const Tensor at = numbers({3}, -1, 1);
  auto got = passes::ReferenceRun(s.graph).run({at});
  ASSERT_TRUE(got.isOk());
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_NEAR((*got)[0].elementAsDouble(i), 2 * at.elementAsDouble(i) + std::exp(at.elementAsDouble(i)), 1e-12);
}

TEST(Differentiate, WhatTheLossDoesNotDependOnGetsZeros) {
  Small s;
  Term x = s.input("x", {3}), other = s.input("other", {2, 2});
  Term loss = reduce("ReduceSum", x * reduce("ReduceSum", call("Floor", other), {0, 1}, false), {0}, false);
  auto g = differentiate(s.patch, loss.id(), {other.id()});
  ASSERT_TRUE(g.isOk());
  const Tensor* zeros = s.graph.constant((*g)[0]);
  ASSERT_NE(zeros, nullptr);
  EXPECT_EQ(zeros->dims(), (std::vector<int64_t>{2, 2}));
}

TEST(Differentiate, NamesEverythingWithoutGradient) {
  Small s;
  Term x = s.input("x", {3});
  Term y = s.b.node("Det", {reshape(x, {1, 3, 1}) * reshape(x, {1, 1, 3})});
  Term z = s.b.node("ReduceProd", {x});
  Term loss = reduce("ReduceSum", y, {0}, false) + reshape(z, {});
  auto g = differentiate(s.patch, loss.id(), {x.id()});
  ASSERT_FALSE(g.isOk());
  EXPECT_NE(g.status().message().find("(Det): "), std::string::npos) << g.status().message();
  EXPECT_NE(g.status().message().find("(ReduceProd): "), std::string::npos) << g.status().message();
  EXPECT_NE(g.status().message().find("has no gradient"), std::string::npos) << g.status().message();
}

TEST(Differentiate, SaysWhyAModeHasNoGradient) {
  Small s;
  Term x = s.input("x", {3});
  Term y = s.b.node("Pad", {x, s.b.ints({1, 1})}, {{"mode", std::string("reflect")}});
  auto g = differentiate(s.patch, reduce("ReduceSum", y, {0}, false).id(), {x.id()});
  ASSERT_FALSE(g.isOk());
  EXPECT_NE(g.status().message().find("has no gradient with the mode reflect"), std::string::npos)
      << g.status().message();
}

TEST(Differentiate, RefusesALossOfSeveralElements) {
  Small s;
  Term x = s.input("x", {3});
  auto g = differentiate(s.patch, (x * x).id(), {x.id()});
  ASSERT_FALSE(g.isOk());
  EXPECT_NE(g.status().message().find("expected one float"), std::string::npos) << g.status().message();
}

}  // namespace
}  // namespace locution::train
