// If, Loop and shapes that depend on data, from graph text to values, against what they should be by hand.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "driver/compiler.h"
#include "driver/extract.h"
#include "driver/lazy_region.h"
#include "driver/prepare.h"
#include "runtime/context.h"

namespace locution::driver {
namespace {

using hostops::HostValue;
using Floats = std::vector<float>;

graph::Graph parse(const std::string& text) {
  auto graph = graph::parseGraph(text);
  EXPECT_TRUE(graph.isOk()) << graph.status().message();
  return graph.isOk() ? std::move(*graph) : graph::Graph();
}
std::shared_ptr<const runtime::Executable> compiled(const std::string& text) {
  CompileOptions options;
  options.jobs = 1;
  auto out = compileGraph(parse(text), options);
  EXPECT_TRUE(out.isOk()) << out.status().message();
  return out.isOk() ? out->executable : nullptr;
}
Tensor vec(const Floats& v) { return Tensor::of<float>(DType::F32, {static_cast<int64_t>(v.size())}, v); }
Tensor truth(bool b) {
  Tensor t(DType::Bool, {});
  t.setElementInt(0, b ? 1 : 0);
  return t;
}
Floats floats(const Tensor& t) {
  Floats out;
  for (int64_t i = 0; i < t.elements(); ++i) out.push_back(static_cast<float>(t.elementAsDouble(i)));
  return out;
}

// Output 0 after a run on these inputs.
Tensor runOn(runtime::Context& context, const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(context.setInput(i, inputs[i]).isOk());
  Status s = context.run();
  EXPECT_TRUE(s.isOk()) << s.message();
  return s.isOk() ? context.output(0) : Tensor(DType::F32, {0});
}
runtime::Context contextOf(const std::shared_ptr<const runtime::Executable>& exe) {
  auto program = runtime::Program::load(exe);
  EXPECT_TRUE(program.isOk()) << program.status().message();
  return runtime::Context(*program, runtime::ThreadPool::create(1));
}

constexpr const char* kIf = R"(graph "choice" {
  input %c: bool[scalar]
  input %x: float32[3]
  const %w: float32[3] = [1, 10, 100]
  %h: float32[3] = Mul(%x, %w)
  %y: float32[3] = If(%c)
  region {
    %a: float32[3] = Add(%h, %x)
    output %a
  }
  region {
    %b: float32[3] = Mul(%h, %w)
    output %b
  }
  %z: float32[3] = Neg(%y)
  output %z
})";

TEST(Regions, IfIsCompiledAheadAndFitsAFile) {
  auto exe = compiled(kIf);
  ASSERT_EQ(exe->regions.size(), 2U);
  EXPECT_TRUE(exe->regions[0].code && exe->regions[1].code);
  std::string path = std::filesystem::temp_directory_path() / ("regions_test." + std::to_string(getpid()) + ".loc");
  Status written = runtime::writeExecutable(*exe, path);
  ASSERT_TRUE(written.isOk()) << written.message();
  auto loaded = runtime::Program::loadFile(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(loaded.isOk()) << loaded.status().message();
  runtime::Context mapped(*loaded, runtime::ThreadPool::create(2)), direct = contextOf(exe);
  for (runtime::Context* context : {&mapped, &direct}) {
    EXPECT_EQ(floats(runOn(*context, {truth(true), vec({1, 2, 3})})), (Floats{-2, -22, -303}));
    EXPECT_EQ(floats(runOn(*context, {truth(false), vec({1, 2, 3})})), (Floats{-1, -200, -30000}));
  }
}

TEST(Regions, ABranchThatMakesNoSenseIsAnErrorOnlyWhereItIsTaken) {
  auto exe = compiled(R"(graph "g" {
    input %c: bool[scalar]
    input %x: float32[3]
    const %w: float32[4] = [1, 2, 3, 4]
    %y: float32[?] = If(%c)
    region {
      %a: float32[?] = Add(%x, %x)
      output %a
    }
    region {
      %b: float32[?] = Add(%x, %w)
      output %b
    }
    output %y
  })");
  runtime::Context context = contextOf(exe);
  EXPECT_EQ(floats(runOn(context, {truth(true), vec({1, 2, 3})})), (Floats{2, 4, 6}));
  ASSERT_TRUE(context.setInput(0, truth(false)).isOk());
  EXPECT_NE(context.run().message().find("'%b'") == std::string::npos,
            context.run().message().find("Add") == std::string::npos)
      << context.run().message();
}

// n elements of x that are not zero, times 2.
constexpr const char* kNonZero = R"(graph "g" {
  input %x: float32[2000]
  %i: int64[1x"n"] = NonZero(%x)
  const %first: int64[scalar] = 0
  %j: int64["n"] = Gather(%i, %first) {axis = 0}
  %v: float32["n"] = Gather(%x, %j) {axis = 0}
  %y: float32["n"] = Add(%v, %v)
  %z: float32["n"] = Exp(%y)
  output %z
})";

TEST(Regions, ShapesThatDependOnData) {
  auto exe = compiled(kNonZero);
  runtime::Context context = contextOf(exe);
  for (int64_t n : {0, 1, 5, 5, 2000}) {
    Tensor x(DType::F32, {2000});
    for (int64_t i = 0; i < n; ++i) x.data<float>()[1999 - i] = -0.5F;
    Tensor z = runOn(context, {x});
    ASSERT_EQ(z.dims(), std::vector<int64_t>{n});
    for (int64_t i = 0; i < n; ++i) EXPECT_NEAR(z.data<float>()[i], 0.36787944F, 1e-6F);
  }
  EXPECT_EQ(runtime::writeExecutable(*exe, "/tmp/never.loc").message().substr(0, 60),
            "a compiled file can't hold what is compiled on first use:\n  ");
  EXPECT_FALSE(std::filesystem::exists("/tmp/never.loc"));
}

constexpr const char* kGrowing = R"(graph "g" {
  input %m: int64[scalar]
  input %x: float32[2]
  %last: float32[?], %sums: float32[?] = Loop(%m, _, %x)
  region {
    input %i: int64[scalar]
    input %c: bool[scalar]
    input %s: float32[?]
    %next: float32[?] = Concat(%s, %x) {axis = 0}
    %sum: float32[?] = ReduceSum(%s) {keepdims = 0}
    output %c
    output %next
    output %sum
  }
  output %last
  output %sums
})";

TEST(Regions, StateThatGrows) {
  runtime::Context context = contextOf(compiled(kGrowing));
  for (int64_t m : {0, 3, 40}) {
    Tensor last = runOn(context, {Tensor::scalarI64(m), vec({1, 2})});
    EXPECT_EQ(last.dims(), std::vector<int64_t>{2 + 2 * m});
    Floats sums = floats(context.output(1));
    ASSERT_EQ(sums.size(), static_cast<size_t>(m));
    for (size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i], static_cast<float>(3 * (i + 1)));
  }
}

TEST(Regions, ProgramsOfManyShapesComeAndGo) {
  CompileOptions options;
  options.jobs = 1;
  auto session = Session::create(options);
  ASSERT_TRUE(session.isOk());
  auto graph = std::make_shared<const graph::Graph>(parse(R"(graph "g" {
    input %x: float32["n"]
    %y: float32["n"] = Exp(%x)
    output %y
  })"));
  LazyRegion region(*session, graph);
  std::vector<std::weak_ptr<const runtime::Program>> programs;
  constexpr auto kShapes = static_cast<int64_t>(LazyRegion::kMaxPrograms) + 8;
  for (int64_t n = 1; n <= kShapes; ++n) {
    auto program = region.compile({HostValue(Tensor(DType::F32, {n}))});
    ASSERT_TRUE(program.isOk()) << program.status().message();
    programs.push_back(*program);
  }
  EXPECT_EQ(region.compilations(), kShapes);
  int64_t alive = 0;
  for (const auto& p : programs) alive += p.expired() ? 0 : 1;
  EXPECT_EQ(alive, static_cast<int64_t>(LazyRegion::kMaxPrograms));
  ASSERT_TRUE(region.compile({HostValue(Tensor(DType::F32, {kShapes}))}).isOk());
  EXPECT_EQ(region.compilations(), kShapes);
}

TEST(Regions, ValuesThatShapesNeedAreCompiledIn) {
  runtime::Context context = contextOf(compiled(R"(graph "g" {
    input %k: float32[1x3]
    const %zero: int64[scalar] = 0
    const %one: int64[scalar] = 1
    const %half: float32[scalar] = 0.5
    %t: float32[scalar] = ReduceSum(%k) {keepdims = 0}
    %n: int64[scalar] = Cast(%t) {to = "int64"}
    %r: int64[?] = Range(%zero, %n, %one)
    %f: float32[?] = Cast(%r) {to = "float32"}
    %y: float32[?] = Mul(%f, %half)
    output %y
  })"));
  EXPECT_EQ(floats(runOn(context, {vec({1, 1, 1}).reshaped({1, 3})})), (Floats{0, 0.5F, 1}));
  EXPECT_EQ(floats(runOn(context, {vec({0, 1, 0}).reshaped({1, 3})})), (Floats{0}));
  EXPECT_EQ(floats(runOn(context, {vec({-1, 0, 0}).reshaped({1, 3})})), Floats{});
}

TEST(Extract, CapturesAreInputsConstantsStay) {
  graph::Graph graph = parse(kIf);
  graph::NodeId choice;
  for (graph::NodeId id : graph.main().nodes)
    if (graph.node(id).op == "If") choice = id;
  Extracted part = extractRegion(graph, graph.node(choice).regions[1]);
  ASSERT_EQ(part.captures.size(), 1U);
  EXPECT_EQ(graph.value(part.captures[0]).name, "h");
  EXPECT_EQ(graph::print(part.graph), R"(graph "choice" {
  input %h: float32[3]
  const %w: float32[3] = [1.0, 10.0, 100.0]
  %b: float32[?] = Mul(%h, %w)
  output %b
}
)");
  EXPECT_EQ(capturesOf(graph, choice).size(), 2U);
  EXPECT_TRUE(graph::verify(part.graph).isOk());
}

}  // namespace
}  // namespace locution::driver
