// Values that are right alone and wrong together.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/derive.hpp"
#include "config/folder_access.hpp"
#include "data/tokenizer.hpp"
#include "plugin/loader.hpp"
#include "triax/error.hpp"

namespace triax::config {

namespace {

using Path = std::filesystem::path;
using Int = std::int64_t;

class Checks {
 public:
  Checks(const Values& values, Refusals& refusals) : values_(values), refusals_(refusals) {}

  void batch() {
    const Int *global = integer("batch.global"), *micro = integer("batch.micro"), *data = integer("parallel.data");
    if (!global || !micro || !data || *global % (*micro * *data) == 0) return;
    const Int unit = *micro * *data, below = *global / unit * unit;
    std::string hint =
        below > 0 ? text("use batch.global {} or {}", below, below + unit) : text("use batch.global {}", unit);
    if (*global % *data == 0) hint += text(", or batch.micro {}", divisor_below(*global / *data, *micro));
    refuse(
        Support::no("batch.global = {} does not divide by parallel.data = {} x batch.micro = {}: each data rank takes "
                    "whole microbatches",
                    *global, *data, *micro)
            .hint("{}", hint));
  }

  void split() {
    const auto* split = values_.find<std::vector<Int>>("parallel.split");
    const Int *pipeline = integer("parallel.pipeline"), *chunks = integer("parallel.chunks");
    if (!split || split->empty() || !pipeline || !chunks) return;
    const Int stages = *pipeline * *chunks, listed = static_cast<Int>(split->size());
    if (listed == stages) return;
    refuse(Support::no("parallel.split lists {} stages, but parallel.pipeline = {} x parallel.chunks = {} makes {}",
                       listed, *pipeline, *chunks, stages)
               .hint("list one number of blocks for each stage, or leave split out"));
  }

  void learning_rate() {
    const auto *lowest = values_.find<double>("lr.min"), *highest = values_.find<double>("optimizer.lr");
    if (lowest && highest && *lowest > *highest) {
      refuse(Support::no("lr.min = {} is above optimizer.lr = {}: the learning rate would rise", *lowest, *highest));
    }
  }

  void evaluation() {
    const Int *every = integer("eval.every"), *batches = integer("eval.batches");
    if (!every || *every == 0) return;
    if (batches && *batches == 0) {
      refuse(Support::no("eval.every = {} needs eval.batches: how many global batches to evaluate on", *every)
                 .hint("write eval.batches = 8, or eval.every = 0"));
    }
    const Path* validation = values_.find<Path>("data.validation");
    if (validation && validation->empty()) {
      refuse(Support::no("eval.every = {} needs data.validation: the token files to evaluate on", *every)
                 .hint("name them, or write eval.every = 0"));
    }
  }

  void timeline() {
    const Int *step = integer("log.timeline"), *steps = integer("train.steps");
    if (step && steps && *step > *steps)
      refuse(Support::no("log.timeline = {} is after the last step, train.steps = {}", *step, *steps)
                 .hint("name a step of the run, or 0 for none"));
  }

  void data_files() {
    for (const char* key : {"data.path", "data.validation"}) {
      const Path* prefix = values_.find<Path>(key);
      if (!prefix) continue;
      if (prefix->empty()) {
        if (std::string_view(key) == "data.path")
          refuse(Support::no("data.path is empty").hint("{}", data::how_to_prepare("data/mine")));
        continue;
      }
      for (const char* ending : {".bin", ".idx"}) {
        const Path file = data::beside(*prefix, ending);
        std::error_code unreadable;
        if (std::filesystem::is_regular_file(file, unreadable)) continue;
        const bool with_ending = prefix->extension() == ".bin" || prefix->extension() == ".idx";
        refuse(Support::no("{}: {} is not there", key, file)
                   .hint("{}", with_ending ? text("leave out {}: the key names all files of a corpus at once",
                                                  prefix->extension().string())
                                           : data::how_to_prepare(*prefix)));
        break;
      }
    }
  }

  void plugin_folders() {
    if (const Support answer = plugin::check_environment(); !answer) refuse(answer);
    const auto* folders = values_.find<std::vector<Path>>("plugins.path");
    if (!folders) return;
    for (const Path& folder : *folders) {
      std::error_code unreadable;
      if (!std::filesystem::is_directory(folder, unreadable))
        refuse(Support::no("plugins.path: {} is not a folder", folder).hint("name folders that hold plugins"));
    }
  }

  void run_folder() {
    const Path* folder = values_.find<Path>("run.dir");
    for (const char* key : {"run.dir", "log.metrics"}) {
      const Path* path = values_.find<Path>(key);
      if (path && path->empty()) refuse(Support::no("{} is empty", key).hint("name it, or leave {} out", key));
    }
    if (folder && !folder->empty()) writable("run.dir", *folder, *folder);
    const Path* metrics = values_.find<Path>("log.metrics");
    if (!metrics || metrics->empty()) return;
    std::error_code unreadable;
    if (std::filesystem::is_directory(*metrics, unreadable)) {
      refuse(Support::no("log.metrics = \"{}\" is a folder", *metrics).hint("name a file"));
    } else if (!folder || metrics->parent_path() != *folder) {
      writable("log.metrics", *metrics, metrics->parent_path());
    }
  }

  /// resolved.toml holds every value.
  void encoding() {
    for (const std::string& key : values_.not_utf8()) {
      if (key == "log.metrics" && values_.at(key).file.empty()) continue; // follows from run.dir
      refuse(Support::no("{} holds bytes that are not UTF-8, and so cannot stand in a TOML", key)
                 .hint("use a name of valid UTF-8, in a folder with such a name"));
    }
  }

 private:
  const Int* integer(const char* key) const { return values_.find<Int>(key); }

  static Int divisor_below(Int number, Int limit) {
    Int divisor = std::min(number, limit);
    while (number % divisor != 0) --divisor;
    return divisor;
  }

  void writable(const char* key, const Path& path, const Path& folder) {
    if (const std::string problem = why_not_writable(folder); !problem.empty())
      refuse(Support::no("{} = \"{}\" cannot be written: {}", key, path, problem)
                 .hint("choose another folder with {}", key));
  }

  void refuse(const Support& answer) {
    const Annotated refused = annotate(answer, values_.list());
    refusals_.add_text(values_.at(refused.lead), refused.text);
  }

  const Values& values_;
  Refusals& refusals_;
};

} // namespace

void check_together(const Values& values, Refusals& refusals) {
  Checks checks(values, refusals);
  checks.batch();
  checks.split();
  checks.learning_rate();
  checks.evaluation();
  checks.timeline();
  checks.data_files();
  checks.plugin_folders();
  checks.run_folder();
  checks.encoding();
}

} // namespace triax::config
