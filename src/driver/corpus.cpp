#include "driver/corpus.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "driver/drawn.h"
#include "driver/lower.h"
#include "driver/prepare.h"

namespace locution::driver {

namespace {

namespace fs = std::filesystem;

bool isModel(const fs::path& file) { return file.extension() == ".onnx" || file.extension() == ".graph"; }

Result<std::vector<std::string>> modelsOf(const std::vector<std::string>& places) {
  std::vector<std::string> out;
  for (const std::string& place : places) {
    std::error_code error;
    if (!fs::is_directory(place, error)) {
      out.push_back(place);
      continue;
    }
    std::vector<std::string> inside;
    for (fs::directory_iterator it(place, error), end; !error && it != end; it.increment(error))
      if (isModel(it->path())) inside.push_back(it->path().string());
    if (error) return Status::error(place + ": " + error.message());
    if (inside.empty()) return Status::error(place + ": a folder without models (.onnx, .graph)");
    std::sort(inside.begin(), inside.end());
    out.insert(out.end(), inside.begin(), inside.end());
  }
  return out;
}

class Reader {
 public:
  explicit Reader(double mostPoints) : mostPoints_(mostPoints) {}

  Status add(Session& session, graph::Graph graph, const std::string& model) {
    LOCUTION_RETURN_IF_ERROR(session.optimise(graph));
    LOCUTION_ASSIGN_OR_RETURN(Lowered lowered, session.lower(graph));
    for (const Step& step : lowered.steps) {
      const auto* k = std::get_if<KernelStep>(&step);
      if (!k || k->computation.raw || points(k->computation) > mostPoints_) continue;
      space::Workload w = space::canonical(k->computation);
      auto [it, isNew] = found_.emplace(w.text, out_.size());
      if (isNew) out_.push_back({std::move(w), {}, {}, 0, k->computation.name, k->op});
      CorpusWorkload& of = out_[it->second];
      ++of.count;
      of.models.insert(model);
      of.ops.insert(k->ops.begin(), k->ops.end());
    }
    return Status::ok();
  }
  std::vector<CorpusWorkload> take() { return std::move(out_); }

 private:
  double mostPoints_;
  std::vector<CorpusWorkload> out_;
  std::map<std::string, size_t> found_;
};

}  // namespace

double points(const loop::Computation& kernel) {
  double sum = 0;
  for (const loop::Stage& s : kernel.stages) {
    double own = 1;
    for (const auto* axes : {&s.axes, &s.reduce})
      for (const loop::Axis& a : *axes) own *= static_cast<double>(a.extent);
    sum += own;
  }
  return sum;
}

Result<std::vector<CorpusWorkload>> readCorpus(const CorpusOptions& corpus, const CompileOptions& options) {
  LOCUTION_ASSIGN_OR_RETURN(std::vector<std::string> models, modelsOf(corpus.places));
  Reader reader(corpus.mostPoints);
  for (const std::string& path : models) {
    LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<Session> session, Session::create(options));
    LOCUTION_ASSIGN_OR_RETURN(graph::Graph graph, session->load(path));
    Status s = reader.add(*session, std::move(graph), fs::path(path).stem().string());
    if (!s.isOk()) return s.withContext(path);
  }
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<Session> session, Session::create(options));
  for (int64_t i = 0; i < corpus.drawn; ++i) {
    graph::Graph graph = drawNetwork(corpus.seed, i);
    LOCUTION_RETURN_IF_ERROR(session->inferTypes(graph));
    Status s = reader.add(*session, std::move(graph), "drawn");
    if (!s.isOk()) return s.withContext("drawn network " + std::to_string(i));
  }
  return reader.take();
}

}  // namespace locution::driver
