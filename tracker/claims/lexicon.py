"""The words that claims are made of, English and Chinese: a new spelling is a new entry here.

Every word has a code of one character. A sentence becomes the string of its codes, and the rules are patterns over it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from store.metrics import METRICS

CODES: Mapping[str, str] = MappingProxyType(
    {
        "P": "number in percent",
        "Q": "number in percentage points",
        "X": "number of times",
        "L": "number with a unit of performance",
        "T": "number with a unit of time",
        "N": "bare number",
        "O": "number of something else: count, version, date, size",
        ">": "arrow",
        "t": "to",
        "f": "from",
        "R": "ranged, between",
        "v": "compared with",
        "a": "preposition",
        "o": "of",
        "m": "metric",
        "s": "statistic",
        "q": "input, output or total",
        "k": "name of an eval",
        "c": "accuracy, score or its filter",
        "u": "up",
        "d": "down",
        "b": "better",
        "w": "worse",
        "=": "flat",
        "p": "peak",
        "U": "at most",
        "G": "at least",
        "W": "within",
        "!": "plan, hope or duty",
        "H": "threshold",
        "Z": "another topic",
        "+": "and, or",
        ",": "comma",
        ";": "end of a clause",
        ":": "colon",
        "(": "opening",
        ")": "closing",
        "/": "slash",
        "|": "cell border",
        "x": "factor of",
        "C": "concurrency",
        "S": "sequence",
        "Y": "layout",
        "K": "config key",
        "g": "GPU",
        "M": "model",
        "F": "framework",
        "r": "precision",
        "i": "identifier, flag, link",
        "_": "any other word",
    }
)

CHANGES = "udbw="

_ENGLISH: Mapping[str, str] = MappingProxyType(
    {
        "t": "to|reaching",
        "f": "from|was",
        "R": "ranged|ranging|ranges|range|between|spans|spanning",
        "v": "vs|vs.|versus|against|compared with|compared to|relative to|than|instead of",
        "a": "at|@|on|for|across|in|with|by",
        "o": "of",
        "q:input": "input",
        "q:output": "output|decode",
        "q:total": "total|tot",
        "s:median": "median|p50",
        "s:mean": "mean|average|avg",
        "s:p75": "p75",
        "s:p90": "p90",
        "s:p95": "p95",
        "s:p99": "p99",
        "s:p99.9": "p99.9|p999",
        "m:tput_per_gpu": (
            "throughput|tput|tpt|tput/gpu|throughput/gpu|tput per gpu|throughput per gpu|per-gpu throughput"
            "|tok/s/gpu|tokens/s/gpu|tok/s per gpu|tps/gpu"
        ),
        "m:tput": "tok/s|tokens/s|tps",
        "m:ttft": "ttft|time to first token|time-to-first-token|first-token latency|first token latency",
        "m:tpot": "tpot|time per output token|per-token latency",
        "m:itl": "itl|inter-token latency|inter token latency",
        "m:e2el": "e2e|e2el|e2e latency|end-to-end latency|end to end latency",
        "m:intvty": "interactivity|intvty|tok/s/user|tokens/s/user",
        "m:mean_qps": "qps|request throughput|requests per second",
        "m:avg_power_w": "avg_power_w|power draw|gpu power|average power",
        "m:joules_per_output_token": "joules_per_output_token|joules per output token|energy per output token",
        "m:joules_per_total_token": "joules_per_total_token|joules per token|energy per token",
        "m:latency": "latency|latencies",
        "m:": "performance|perf",
        "k:gsm8k": "gsm8k|gsm-8k|gsm 8k",
        "k:gpqa": "gpqa|gpqa-diamond|gpqa diamond|gpqa_diamond",
        "k:swe-bench": "swe-bench|swebench|swe bench",
        "k:aime": "aime|aime24|aime25",
        "k:mmlu": "mmlu|mmlu-pro|mmlu_pro",
        "k:": "eval|evals|lm-eval|lm_eval|accuracy eval",
        "c:em_strict": "strict|strict-match|strict match|em_strict|strict_match|strict exact-match",
        "c:em_flexible": "flex|flexible|flexible-extract|flexible extract|flexible-match|em_flexible",
        "c:": "accuracy|score|scores|scored|scoring|exact-match|exact match|exact_match",
        "u": (
            "increase|increases|increased|increasing|higher|rise|rises|rose|raised|raises|raise|up|more|grew"
            "|grows|longer|climbs|climbed|above|climb|jumps|jumped|jump"
        ),
        "d": (
            "decrease|decreases|decreased|lower|lowers|lowered|reduce|reduces|reduced|reduction|drop|drops"
            "|dropped|dropping|fall|falls|fell|down|less|cut|cuts|collapsed|collapsing|collapse|collapses|shrank"
            "|shrinks|shorter|below|decline|declines|declined|shaves|shaved|shave|trims|trimmed"
        ),
        "b": (
            "improvement|improvements|improve|improves|improved|improving|uplift|gain|gains|gained|faster"
            "|better|speedup|speed-up|speedups|boost|boosts|boosted|win|wins|recover|ahead|recovers|recovered"
            "|speeds up|quicker"
        ),
        "w": (
            "regression|regressions|regress|regresses|regressed|slower|worse|slowdown|degradation|degrades"
            "|degraded|degrade|penalty|behind|loss|loses|lost|hit of|slow-down|deficit"
        ),
        "=": "flat|unchanged|neutral|parity|on par|within noise|run-to-run noise",
        "p": "peak|peaks|peaked|peaking|max|maximum|best|top|highest",
        "U": "up to|at most|as much as|no more than|under|less than|as high as",
        "G": "at least|more than|over|no less than|exceeds|exceeding|upwards of|north of|greater than",
        "x": "factor of|a factor of",
        "W": "within|within +/-",
        "!": (
            "target|targets|targeting|targeted|aim|aims|aiming|expect|expects|expected|expecting|should|goal"
            "|hope|hoping|plan|plans|planned|may|might|could|would|must|require|requires|required|todo"
            "|anticipate|anticipated|projected|projection|estimate|estimated|theoretical|hypothetical|will|want"
            "|needs to|potential|potentially"
        ),
        "H": (
            "threshold|thresholds|gate|gates|floor|cutoff|cut-off|tolerance|pass bar|limit|minimum|margin|cap"
            "|capped|ceiling|budget|baseline threshold|bar|requirement|slo|sla"
        ),
        "Z": (
            "acceptance|acceptance rate|acceptance length|hit rate|cache hit|cache hit rate|utilization"
            "|utilisation|memory|kv|vram|hbm|dram|fraction|timeout|timeouts|delay|duration|weights|weight"
            "|temperature|top_p|top-p|golden|warmup|warm-up|startup|confidence|coverage|p-value|compile time"
            "|model load|model loading|weight loading|pull|pulls|image size|smaller|boot|compilation|install"
            "|load time|occupancy|tdp|computation|flops|epsilon|rtol|atol|wait|sleep|idle|disk|build time|build"
            "|retry|interval|padding|poll|polling|heartbeat|success rate|pass rate|error rate|storage|bandwidth"
            "|capacity|allocation|reservation|sm|cold-start|cold start|dropout"
        ),
        "+": "and|or|&|plus",
    }
)

_CHINESE: Mapping[str, str] = MappingProxyType(
    {
        "t": "至|到|达到|达|变为|变成",
        "t:up": "升至|升到|增至|增到|提升至|提升到|提高到|提高至|上升到|上升至|增加到|增加至|涨到|涨至|恢复到|恢复至",
        "t:down": "降至|降到|下降到|下降至|降低到|降低至|跌至|跌到|减少到|减少至|缩短到|缩短至|减至",
        "f": "从|由|自",
        "R": "介于|范围|区间|之间|分布在|区间为|范围为",
        "v": "相比|对比|相较于|相较|较|比|相对|而非|优于|高于|低于",
        "a": "在|于|对|针对",
        "o": "的",
        "q:input": "输入",
        "q:output": "输出|解码",
        "q:total": "总",
        "s:median": "中位数|中位",
        "s:mean": "平均|均值",
        "m:tput_per_gpu": "吞吐量|吞吐|每 GPU 吞吐|每 GPU 吞吐量|每卡吞吐|每卡吞吐量|单卡吞吐|单卡吞吐量",
        "m:ttft": "首 token 延迟|首token延迟|首字延迟|首 token 时延|首词延迟|首 token 时间",
        "m:tpot": "每 token 延迟|单 token 延迟",
        "m:itl": "token 间延迟|token 间时延",
        "m:e2el": "端到端延迟|端到端时延|端到端",
        "m:intvty": "交互性",
        "m:avg_power_w": "功耗|平均功耗",
        "m:latency": "延迟|时延",
        "m:": "性能",
        "c:": "准确率|得分|分数|评分|正确率|精确匹配",
        "c:em_strict": "严格匹配|严格",
        "c:em_flexible": "宽松匹配|灵活匹配|宽松|灵活提取|灵活",
        "k:": "评估|评测",
        "u": "上升|增加|升高|上涨|增长|更高|高出|提高|高了|多出|升|高",
        "d": "下降|降低|减少|下滑|缩短|更低|低了|降幅|跌|降|下跌|减小|低",
        "b": "提升|改善|加速|更快|优化|增益|收益|快了|更好|恢复|涨幅|提速|快",
        "w": "退化|回归|恶化|变慢|更慢|劣化|更差|差|慢了|回退|倒退|损失|慢",
        "=": "持平|不变|中性|无变化|基本一致|一致|噪声范围内",
        "p": "峰值|最大值|最佳|最优|峰点",
        "U": "最高|最多|至多|不超过|高达|以内|最大",
        "G": "至少|超过|不低于|以上|超|逾",
        "W": "在 ±|波动|浮动|误差|相差",
        "!": "目标|预计|预期|计划|期望|有望|希望|应当|应|须|需要|需|可能|或可|理论|估计|必须|将会|争取|拟",
        "H": "阈值|门槛|下限|上限|底线|门限|容差|要求|及格线",
        "Z": (
            "接受率|接受长度|命中率|命中|利用率|显存|内存|超时|比例|权重|温度|缓存|占用|预热|延时|带宽|容量"
            "|成功率|通过率|时长|间隔|计算量"
        ),
        "+": "和|与|及|以及|、|或",
        "_": (
            "升级|应用|高吞吐|低延迟|高性能|高峰|最差|高端|低端|提高到了|高速|响应|对应|快照|快速|自动|由于"
            "|对齐|关于|基于|用于|属于|位于|差异|偏差|自适应|自带|适应|供应|反应|相应|降级|存在|现在|正在|处于"
            "|来自|各自|比如|比较|对象|优化器|加速器|对照|应对"
        ),
    }
)

_MARKS: Mapping[str, str] = MappingProxyType(
    {
        "->": ">", "-->": ">", "→": ">", "=>": ">", "⇒": ">", "➜": ">", "➔": ">", "⟶": ">",
        ",": ",", "，": ",", ";": ";", "；": ";", ":": ":", "：": ":", "(": "(", "（": "(", "[": "(",
        ")": ")", "）": ")", "]": ")", "/": "/", "|": "|", "=": ":", "—": ",", "–": ",", "--": ",",
    }
)  # fmt: skip


def _entries(table: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    return {word.lower(): (key[0], key[2:]) for key, words in table.items() for word in words.split("|")}


_KEYS = {key: ("m", key) for key, row in METRICS.items() if "_" in key and row.family != "accuracy"}

WORDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {**_KEYS, **_entries(_CHINESE), **_entries(_ENGLISH), **{mark: (code, "") for mark, code in _MARKS.items()}}
)
"""Lower-case spelling to its code and what it stands for."""


def _alternation(words: list[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


_LATIN = _alternation([word for word in (*_KEYS, *_entries(_ENGLISH)) if word != "@"])
ENGLISH_PATTERN = rf"(?<![A-Za-z0-9_])(?:{_LATIN})(?![A-Za-z0-9_]|-[A-Za-z0-9])|@"
CHINESE_PATTERN = _alternation(list(_entries(_CHINESE)))
ARROW_PATTERN = _alternation([mark for mark, code in _MARKS.items() if code == ">"])
MARK_PATTERN = _alternation(list(_MARKS))
