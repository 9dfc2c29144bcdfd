"""Fig. 5 of Bastoni, Brandenburg, Anderson (OSPERT 2010): when global scheduling is worth its
migrations. Weighted schedulability by cache-related delay, as a chart and as a data frame.

    python fig5.py; SETS=1000 python fig5.py for the size of the paper
"""

import os
from pathlib import Path

import warmset as ws

results = ws.Study("ospert10-fig5", sets=int(os.environ.get("SETS", "20"))).run()
print(results)

Path("fig5.svg").write_text(results.svg())

# As pandas: where does each policy fall below what P-EDF reaches without any delay?
curves = results.weighted.to_pandas().pivot(index="delay_ns", columns="policy", values="weighted")
reached = curves["P-EDF"].iloc[0]
for policy, curve in curves.items():
    kept = curve[curve >= reached]
    word = f"up to {kept.index.max() / 1000:.0f} us" if len(kept) else "never"
    print(f"{policy} keeps up with P-EDF without delays: {word}")
