// SPDX-License-Identifier: Apache-2.0
#include "hf/run_toml.hpp"

#include "base/printable.hpp"
#include "os/path_names.hpp"
#include "plugin/option_text.hpp"
#include "triax/text.hpp"

namespace triax::hf {

namespace {

namespace fs = std::filesystem;

/// As the TOML names it: relative to its folder, which is looked up without links when the TOML is read.
fs::path seen_from(const fs::path& toml, const fs::path& path) {
  const fs::path whole = os::resolved_path(path);
  const fs::path relative = whole.lexically_relative(os::resolved_path(fs::absolute(toml).parent_path()));
  return relative.empty() ? whole : relative;
}

std::string quoted(const fs::path& path) {
  return plugin::to_toml(path);
}

// The largest that the model supports, with which samples may not fit into memory.
constexpr const char* kOfSequence = "  # tokens per sample: use fewer if no weight depends on it, as in model-llama";

// A small learning rate: the weights are trained. All other choices are those of examples/.
constexpr const char* kOtherTables = R"(
[batch]
global = 8
micro = 1

[schedule]
plugin = "sched-1f1b"

[comm]
plugin = "comm-local"

[kernels]
plugin = "kernels-cpu"

[optimizer]
plugin = "optim-adamw"
lr = 1e-5

[train]
steps = 100
)";

} // namespace

std::string run_toml(const RunChoices& choices) {
  std::string out = text("# {}.\n\n[model]\n", shortened(printable(choices.comment), 400));
  for (const auto& [key, value] : choices.model)
    out += text("{} = {}{}\n", key, value, key == "sequence" ? kOfSequence : "");
  out += text("\n[checkpoint]\nfrom = {}\nload = \"weights\"\n", quoted(seen_from(choices.run, choices.checkpoint)));
  out += "\n[data]\n";
  out += choices.data.empty() ? "# path = \"PREFIX\"  # token files of triax data prepare, with the model's tokenizer\n"
                              : text("path = {}\n", quoted(seen_from(choices.run, choices.data)));
  out += kOtherTables;
  if (choices.paths.empty()) return out;
  out += "\n[plugins]\npath = [";
  for (std::size_t i = 0; i < choices.paths.size(); ++i)
    out += (i == 0 ? "" : ", ") + quoted(seen_from(choices.run, choices.paths[i]));
  return out + "]\n";
}

} // namespace triax::hf
