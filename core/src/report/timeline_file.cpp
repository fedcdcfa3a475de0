#include "report/timeline_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "report/json.hpp"
#include "triax/error.hpp"

namespace triax::report {

namespace {

namespace fs = std::filesystem;
using schedule::Kind;

constexpr std::string_view kPrefix = "timeline-rank-", kSuffix = ".json";

fs::path file_of(const fs::path& folder, int rank) {
  return folder / text("{}{}{}", kPrefix, rank, kSuffix);
}

JsonObject to_json(const schedule::MeasuredPass& pass) {
  JsonObject out;
  out.set("kind", rule(pass.span.kind).name)
      .set("stage", pass.span.stage)
      .set("microbatch", pass.span.microbatch)
      .set("start_ms", pass.span.start)
      .set("end_ms", pass.span.end)
      .set("waited_ms", pass.waited_ms);
  return out;
}

Kind kind_named(const std::string& name) {
  for (const schedule::Rule& rule : schedule::rules())
    if (name == rule.name && runs_layers(rule.kind)) return rule.kind;
  throw Error(text("\"{}\" is no kind of pass", name));
}

schedule::MeasuredPass to_pass(const nlohmann::json& of) {
  return {{kind_named(of.at("kind").get<std::string>()), of.at("stage").get<std::int32_t>(),
           of.at("microbatch").get<std::int32_t>(), of.at("start_ms").get<double>(), of.at("end_ms").get<double>()},
          of.at("waited_ms").get<double>()};
}

} // namespace

void write_timeline(const fs::path& folder, const RankTimeline& timeline) {
  const fs::path file = file_of(folder, timeline.rank);
  std::ofstream out(file);
  out << "{\"rank\":" << timeline.rank << ",\"step\":" << timeline.step << ",\"passes\":[";
  const char* separator = "\n";
  for (const schedule::MeasuredPass& pass : timeline.passes) {
    out << separator << to_json(pass).line();
    separator = ",\n";
  }
  out << "\n]}\n" << std::flush;
  if (!out) throw Error(text("cannot be written: {}", std::strerror(errno)), file.string());
}

RankTimeline read_timeline(const fs::path& folder, int rank) {
  const fs::path file = file_of(folder, rank);
  std::ifstream in(file);
  if (!in)
    throw Error(text("cannot be read: {}", std::strerror(errno)), file.string(),
                "a run writes it at the step that log.timeline names: --set log.timeline=3");
  try {
    const nlohmann::json read = nlohmann::json::parse(in);
    RankTimeline out{read.at("rank").get<int>(), read.at("step").get<std::int64_t>(), {}};
    for (const nlohmann::json& pass : read.at("passes")) out.passes.push_back(to_pass(pass));
    return out;
  } catch (const std::exception& error) {
    throw Error(text("is no timeline of a rank: {}", error.what()), file.string(), "train again with log.timeline");
  }
}

void remove_timelines(const fs::path& folder) {
  std::error_code none;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end; entry.increment(none)) {
    const std::string name = entry->path().filename().string();
    std::error_code kept;
    if (name.starts_with(kPrefix) && name.ends_with(kSuffix)) fs::remove(entry->path(), kept);
  }
}

} // namespace triax::report
