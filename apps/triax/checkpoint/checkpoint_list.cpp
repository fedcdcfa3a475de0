// SPDX-License-Identifier: Apache-2.0
// triax checkpoint list: the checkpoints of a run.
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint_verbs.hpp"
#include "common/errors_out.hpp"
#include "common/printable_line.hpp"
#include "common/refuse.hpp"
#include "common/result_out.hpp"
#include "common/table.hpp"
#include "common/verbs.hpp"
#include "report/units.hpp"
#include "train/find_checkpoint.hpp"

namespace triax::app {

namespace {

using Json = nlohmann::ordered_json;

struct ListArguments {
  std::string run;
  bool json = false;
};

/// A row of the list. A manifest that cannot be read is part of the answer.
struct ListedCheckpoint {
  checkpoint::FoundCheckpoint found;
  std::optional<checkpoint::Manifest> manifest;
  std::string problem; // if there is no manifest
};

std::vector<ListedCheckpoint> read_listed(const std::vector<checkpoint::FoundCheckpoint>& found) {
  std::vector<ListedCheckpoint> out;
  for (const checkpoint::FoundCheckpoint& of : found) {
    ListedCheckpoint row{of, {}, {}};
    try {
      row.manifest = checkpoint::read_manifest(of.folder / checkpoint::kManifestFile);
    } catch (const Error& error) {
      row.problem = error.what();
    }
    out.push_back(std::move(row));
  }
  return out;
}

std::string list_text(const train::RunCheckpoints& run, const std::vector<ListedCheckpoint>& rows) {
  std::vector<std::vector<std::string>> cells = {{"step", "tokens", "size", "created", "triax version"}};
  for (const ListedCheckpoint& row : rows) {
    const std::string step = grouped(row.found.step);
    if (!row.manifest) {
      cells.push_back({step, "?", "?", "not readable", ""});
      continue;
    }
    cells.push_back({step, grouped(row.manifest->tokens), report::bytes_text(total_bytes(row.manifest->content)),
                     row.manifest->created, row.manifest->engine});
  }
  const std::string newest = rows.back().manifest
                                 ? text("newest: step {} (checksums not verified; triax checkpoint verify RUN)\n",
                                        grouped(rows.back().found.step))
                                 : "";
  std::string incomplete;
  for (const std::filesystem::path& folder : run.incomplete)
    incomplete += printable_line(
                      text("{}: incomplete, not used (no {})", folder.filename().string(), checkpoint::kManifestFile)) +
                  '\n';
  return printable_line(run.folder.string()) + '\n' + table(cells) + incomplete + newest;
}

std::string list_json(const train::RunCheckpoints& run, const std::vector<ListedCheckpoint>& rows) {
  Json listed = Json::array();
  for (const ListedCheckpoint& row : rows) {
    Json of = {{"step", row.found.step}, {"folder", row.found.folder.string()}};
    if (row.manifest) {
      of["tokens"] = row.manifest->tokens;
      of["bytes"] = total_bytes(row.manifest->content);
      of["created"] = row.manifest->created;
      of["engine"] = row.manifest->engine;
    } else {
      of["problem"] = row.problem;
    }
    listed.push_back(std::move(of));
  }
  Json incomplete = Json::array();
  for (const std::filesystem::path& folder : run.incomplete) incomplete.push_back(folder.string());
  const Json out = {{"folder", run.folder.string()},
                    {"continues_from", rows.back().manifest ? Json(rows.back().found.folder.string()) : Json(nullptr)},
                    {"checkpoints", std::move(listed)},
                    {"incomplete", std::move(incomplete)}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

int list_checkpoints(const ListArguments& arguments) {
  train::RunCheckpoints run;
  try {
    run = train::find_checkpoints(arguments.run);
  } catch (const train::CheckpointError& error) {
    return refuse(error.code(), error, "RUN", arguments.json);
  }
  const std::vector<ListedCheckpoint> rows = read_listed(run.found);
  result_out() << (arguments.json ? list_json(run, rows) : list_text(run, rows));
  result_out().flush();
  int status = kDone;
  for (const ListedCheckpoint& row : rows) {
    if (row.manifest) continue;
    print_problem(row.problem);
    status = kFailed;
  }
  return status;
}

} // namespace

void add_checkpoint_list(CLI::App& checkpoint, int& status) {
  const auto arguments = std::make_shared<ListArguments>();
  CLI::App* verb = checkpoint.add_subcommand("list", "lists the complete checkpoints of a run, oldest first");
  verb->add_option("RUN", arguments->run, "a run's folder or TOML file, or a folder of checkpoints")->required();
  verb->add_flag("--json", arguments->json, "prints one JSON object");
  verb->callback([arguments, &status] { status = list_checkpoints(*arguments); });
}

} // namespace triax::app
