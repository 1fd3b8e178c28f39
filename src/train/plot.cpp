#include "train/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace locution::train {

namespace {

constexpr double kWidth = 760, kHeight = 260, kLeft = 64, kRight = 150, kTop = 34, kBottom = 34;
constexpr const char* kColours[] = {"#1f6fb4", "#d95f02", "#1b9e77", "#7570b3", "#a6761d"};
constexpr int kTicks = 4;

std::string number(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", v);
  return text;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

struct Range {
  double low = INFINITY, high = -INFINITY;
  void add(double v) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  /// Room around a single value.
  void widen() {
    if (!(low <= high)) low = 0, high = 1;
    if (low == high) low -= 0.5, high += 0.5;
  }
  double at(double v) const { return (v - low) / (high - low); }
};

std::string textAt(double x, double y, const char* anchor, const std::string& text, const char* colour = "#333") {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\" fill=\"" + colour +
         "\">" + escaped(text) + "</text>\n";
}

bool isFinite(const std::pair<double, double>& p) { return std::isfinite(p.first) && std::isfinite(p.second); }

std::string panelSvg(const Panel& panel, double top, const Range& x) {
  Range y;
  for (const Curve& c : panel.curves)
    for (const auto& p : c.points)
      if (isFinite(p)) y.add(p.second);
  y.widen();
  const double width = kWidth - kLeft - kRight, height = kHeight - kTop - kBottom, bottom = top + kTop + height;
  std::string out = textAt(kLeft, top + kTop - 10, "start", panel.title);
  for (int i = 0; i <= kTicks; ++i) {
    const double part = static_cast<double>(i) / kTicks, at = bottom - part * height, left = kLeft + part * width;
    out += "<line x1=\"" + number(kLeft) + "\" x2=\"" + number(kLeft + width) + "\" y1=\"" + number(at) + "\" y2=\"" +
           number(at) + "\" stroke=\"#ddd\"/>\n";
    out += textAt(kLeft - 6, at + 4, "end", number(y.low + part * (y.high - y.low)));
    out += textAt(left, bottom + 16, "middle", number(x.low + part * (x.high - x.low)));
  }
  for (size_t i = 0; i < panel.curves.size(); ++i) {
    const char* colour = kColours[i % std::size(kColours)];
    std::string points;
    for (const auto& p : panel.curves[i].points)
      if (isFinite(p))
        points += number(kLeft + x.at(p.first) * width) + "," + number(bottom - y.at(p.second) * height) + " ";
    out += "<polyline fill=\"none\" stroke=\"" + std::string(colour) + "\" stroke-width=\"1.5\" points=\"" + points +
           "\"/>\n";
    out += textAt(kLeft + width + 10, top + kTop + 14 + 18 * static_cast<double>(i), "start", panel.curves[i].name,
                  colour);
  }
  return out;
}

}  // namespace

std::string plotSvg(const std::string& title, const std::string& xLabel, const std::vector<Panel>& panels) {
  Range x;
  for (const Panel& p : panels)
    for (const Curve& c : p.curves)
      for (const auto& point : c.points)
        if (isFinite(point)) x.add(point.first);
  x.widen();
  const double height = 50 + kHeight * static_cast<double>(panels.size());
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(kWidth) + "\" height=\"" +
                    number(height) + "\" font-family=\"sans-serif\" font-size=\"12\">\n" +
                    "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n" + textAt(kLeft, 20, "start", title);
  for (size_t i = 0; i < panels.size(); ++i) out += panelSvg(panels[i], 20 + kHeight * static_cast<double>(i), x);
  out += textAt(kLeft + (kWidth - kLeft - kRight) / 2, height - 8, "middle", xLabel);
  return out + "</svg>\n";
}

}  // namespace locution::train
