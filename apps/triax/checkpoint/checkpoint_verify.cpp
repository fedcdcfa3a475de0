// SPDX-License-Identifier: Apache-2.0
// triax checkpoint verify: verifies the checksums of all files of a checkpoint.
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_verbs.hpp"
#include "common/errors_out.hpp"
#include "common/printable_line.hpp"
#include "common/refuse.hpp"
#include "common/result_out.hpp"
#include "common/verbs.hpp"
#include "report/units.hpp"
#include "train/find_checkpoint.hpp"

namespace triax::app {

namespace {

using Json = nlohmann::ordered_json;

struct VerifyArguments {
  std::string checkpoint;
  bool json = false;
};

struct VerifiedCheckpoint {
  std::filesystem::path folder;
  std::size_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<Error> problems;
};

/// A damaged manifest is one of the problems.
VerifiedCheckpoint verify_files(const std::filesystem::path& folder) {
  VerifiedCheckpoint out{folder, 0, 0, {}};
  try {
    checkpoint::TensorReader reader(folder);
    out.files = reader.manifest().content.files.size();
    out.bytes = total_bytes(reader.manifest().content);
    out.problems = reader.verify(0, 1);
  } catch (const Error& error) {
    out.problems.push_back(error);
  }
  return out;
}

std::string verified_json(const VerifiedCheckpoint& verified) {
  Json problems = Json::array();
  for (const Error& error : verified.problems)
    problems.push_back({{"file", error.where()}, {"message", error.message()}, {"hint", error.hint()}});
  const Json out = {{"folder", verified.folder.string()},
                    {"files", verified.files},
                    {"bytes", verified.bytes},
                    {"problems", std::move(problems)}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

int verify_checkpoint(const VerifyArguments& arguments) {
  std::filesystem::path folder;
  try {
    folder = train::find_checkpoint(arguments.checkpoint);
  } catch (const train::CheckpointError& error) {
    return refuse(error.code(), error, "CHECKPOINT", arguments.json);
  }
  const VerifiedCheckpoint verified = verify_files(folder);
  for (const Error& error : verified.problems) print_problem(error.what());
  if (arguments.json) {
    result_out() << verified_json(verified);
  } else if (verified.problems.empty()) {
    result_out() << text("{}: {} in {} file{}: all checksums match\n", printable_line(folder.string()),
                         report::bytes_text(verified.bytes), verified.files, verified.files == 1 ? "" : "s");
  }
  return verified.problems.empty() ? kDone : kFailed;
}

} // namespace

void add_checkpoint_verify(CLI::App& checkpoint, int& status) {
  const auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* verb =
      checkpoint.add_subcommand("verify", "verifies the checksums of all files; exit status 1 on a mismatch");
  verb->add_option("CHECKPOINT", arguments->checkpoint, kCheckpointDoc)->required();
  verb->add_flag("--json", arguments->json, "prints one JSON object");
  verb->callback([arguments, &status] { status = verify_checkpoint(*arguments); });
}

} // namespace triax::app
