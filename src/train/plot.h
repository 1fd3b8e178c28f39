// A line plot as SVG: two panels over the same steps, for a training's log.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace locution::train {

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
};
struct Panel {
  std::string title;
  std::vector<Curve> curves;
};

/// Panels below one another. Equal input gives equal text; points that aren't finite are left out.
std::string plotSvg(const std::string& title, const std::string& xLabel, const std::vector<Panel>& panels);

}  // namespace locution::train
