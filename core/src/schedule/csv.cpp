#include "schedule/csv.hpp"

namespace triax::schedule {

std::string to_csv(const Schedule& schedule) {
  std::string out;
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    const char* separator = "";
    for (const Action& action : schedule.row(rank)) {
      out += separator + to_text(action);
      separator = ",";
    }
    out += '\n';
  }
  return out;
}

} // namespace triax::schedule
