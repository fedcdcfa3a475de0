// SPDX-License-Identifier: Apache-2.0
#include "report/timeline_file.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>

#include "base/rank_files.hpp"
#include "os/errno_text.hpp"
#include "os/replace_file.hpp"
#include "report/json.hpp"
#include "triax/error.hpp"

namespace triax::report {

namespace {

namespace fs = std::filesystem;
using schedule::Kind;

fs::path file_of(const fs::path& folder, int rank) {
  return folder / kRankTimelines.of(rank);
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

JsonObject to_json(const MeasuredCall& call) {
  JsonObject out;
  out.set("call", call.call).set("axis", call.axis).set("action", call.action);
  if (call.peer >= 0) out.set("peer", call.peer);
  out.set("bytes", call.bytes)
      .set("posted_ms", call.posted)
      .set("completed_ms", call.completed)
      .set("awaited", call.awaited);
  return out;
}

JsonObject to_json(const MeasuredWait& wait) {
  JsonObject out;
  out.set("start_ms", wait.start).set("end_ms", wait.end).set("for", wait.reason);
  if (wait.peer >= 0) out.set("peer", wait.peer);
  return out;
}

/// Writes ,"key":[ and one entry per line.
template <class Entry>
void write_list(std::ostream& out, const char* key, const std::vector<Entry>& entries) {
  out << ",\"" << key << "\":[";
  const char* separator = "\n";
  for (const Entry& entry : entries) {
    out << separator << to_json(entry).line();
    separator = ",\n";
  }
  out << "\n]";
}

Kind kind_of(const std::string& name, bool pass) {
  const std::optional<Kind> kind = schedule::kind_named(name);
  if (!kind || runs_layers(*kind) != pass)
    throw Error(text("\"{}\" is not {}", name, pass ? "a pass" : "an action, or is a pass"));
  return *kind;
}

constexpr double kMaxMs = 1e15; // sums of times stay exact enough

std::int64_t whole(const nlohmann::json& of, const char* key, std::int64_t least, std::int64_t most) {
  const nlohmann::json& value = of.at(key);
  if (value.is_number_integer() && value.get<std::int64_t>() >= least && value.get<std::int64_t>() <= most)
    return value.get<std::int64_t>();
  if (least == most) throw Error(text("{} must be {}, got {}", key, least, value.dump()));
  throw Error(text("{} must be an integer in [{}, {}], got {}", key, least, most, value.dump()));
}

double time(const nlohmann::json& of, const char* key, double least) {
  const double value = of.at(key).get<double>();
  if (value >= least && value <= kMaxMs) return value;
  throw Error(text("{} must be a time of {} or later, got {}", key, least, of.at(key).dump()));
}

constexpr std::int64_t kMaxIndex = std::numeric_limits<std::int32_t>::max();

/// Reads a pass or another action, which may have no stage or microbatch. `free`: end of the previous one.
schedule::MeasuredPass to_action(const nlohmann::json& of, bool pass, double free) {
  const std::int64_t least = pass ? 0 : -1;
  schedule::MeasuredPass out;
  out.span.kind = kind_of(of.at("kind").get<std::string>(), pass);
  out.span.stage = static_cast<std::int32_t>(whole(of, "stage", least, kMaxIndex));
  out.span.microbatch = static_cast<std::int32_t>(whole(of, "microbatch", least, kMaxIndex));
  out.span.start = time(of, "start_ms", free);
  out.span.end = time(of, "end_ms", out.span.start);
  out.waited_ms = time(of, "waited_ms", 0);
  return out;
}

std::vector<schedule::MeasuredPass> to_actions(const nlohmann::json& list, bool pass) {
  std::vector<schedule::MeasuredPass> out;
  for (const nlohmann::json& of : list) out.push_back(to_action(of, pass, out.empty() ? 0 : out.back().span.end));
  return out;
}

int to_peer(const nlohmann::json& of) {
  return of.contains("peer") ? static_cast<int>(whole(of, "peer", 0, kMaxIndex)) : -1;
}

MeasuredCall to_call(const nlohmann::json& of) {
  MeasuredCall out;
  out.call = of.at("call").get<std::string>();
  out.axis = of.at("axis").get<std::string>();
  out.action = of.at("action").get<std::string>();
  out.peer = to_peer(of);
  out.bytes = static_cast<std::uint64_t>(whole(of, "bytes", 0, std::numeric_limits<std::int64_t>::max()));
  out.posted = time(of, "posted_ms", 0);
  out.completed = time(of, "completed_ms", out.posted);
  out.awaited = of.at("awaited").get<bool>();
  return out;
}

MeasuredWait to_wait(const nlohmann::json& of, double free) {
  MeasuredWait out;
  out.start = time(of, "start_ms", free);
  out.end = time(of, "end_ms", out.start);
  out.reason = of.at("for").get<std::string>();
  out.peer = to_peer(of);
  return out;
}

/// Empty if it is missing: a file may have only passes.
nlohmann::json list(const nlohmann::json& of, const char* key) {
  return of.contains(key) ? of.at(key) : nlohmann::json::array();
}

} // namespace

Machine this_machine() {
  Machine out;
  std::array<char, 256> host{};
  out.host = ::gethostname(host.data(), host.size() - 1) == 0 ? host.data() : "unknown";
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), out.boot);
  return out;
}

void write_timeline(const fs::path& folder, const RankTimeline& timeline) {
  JsonObject head;
  head.set("rank", timeline.rank)
      .set("ranks", timeline.ranks)
      .set("host", timeline.machine.host)
      .set("boot", timeline.machine.boot)
      .set("step", timeline.step)
      .set("start_ms", timeline.start)
      .set("end_ms", timeline.end);
  std::ostringstream out;
  std::string opened = head.line();
  opened.pop_back();
  out << opened;
  write_list(out, "passes", timeline.passes);
  write_list(out, "actions", timeline.actions);
  write_list(out, "calls", timeline.calls);
  write_list(out, "waits", timeline.waits);
  os::replace_file(file_of(folder, timeline.rank), out.str() + "}\n");
}

RankTimeline read_timeline(const fs::path& folder, int rank) {
  const fs::path file = file_of(folder, rank);
  std::error_code unknown;
  if (fs::exists(file, unknown) && !fs::is_regular_file(file, unknown))
    throw Error("is not a regular file", file.string(), "replace it with the timeline that the rank wrote");
  std::ifstream in(file);
  if (!in) {
    const int why = errno;
    const std::vector<fs::path> others = timelines_in(folder);
    throw Error(
        why == ENOENT ? "does not exist" : text("cannot be read: {}", errno_text(why)), file.string(),
        !others.empty()
            ? text("the folder has the files of {} other ranks: copy this file from the machine of "
                   "the rank, or train again with log.timeline, in a folder that all ranks share",
                   others.size())
            : std::string("record a step first: triax train RUN.toml --set log.timeline=N, where N is a step to come"));
  }
  try {
    const nlohmann::json read = nlohmann::json::parse(in);
    RankTimeline out{static_cast<int>(whole(read, "rank", rank, rank)),
                     whole(read, "step", 1, std::numeric_limits<std::int64_t>::max()),
                     {},
                     static_cast<int>(whole(read, "ranks", rank + 1, std::numeric_limits<int>::max())),
                     {read.at("host").get<std::string>(), read.at("boot").get<std::string>()}};
    out.passes = to_actions(read.at("passes"), true);
    if (read.contains("start_ms")) {
      out.start = time(read, "start_ms", 0);
      out.end = time(read, "end_ms", out.start);
    }
    out.actions = to_actions(list(read, "actions"), false);
    for (const nlohmann::json& call : list(read, "calls")) out.calls.push_back(to_call(call));
    for (const nlohmann::json& wait : list(read, "waits"))
      out.waits.push_back(to_wait(wait, out.waits.empty() ? 0 : out.waits.back().end));
    return out;
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(text("is not a timeline of a rank: invalid JSON at byte {}", error.byte), file.string(),
                "train again with log.timeline");
  } catch (const nlohmann::json::exception&) {
    throw Error("is not a timeline of a rank: a value is missing, or of another type", file.string(),
                "train again with log.timeline");
  } catch (const std::exception& error) {
    throw Error(text("is not a timeline of a rank: {}", error.what()), file.string(), "train again with log.timeline");
  }
}

std::vector<fs::path> timelines_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code none;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end; entry.increment(none)) {
    if (kRankTimelines.has(entry->path().filename().string())) out.push_back(entry->path());
  }
  return out;
}

} // namespace triax::report
