"""How the report looks, in light and in dark, and what can be clicked in it."""

STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--soft:#5b6675;--line:#d9dee5;--back:#fff;--panel:#f6f8fa;--good:15,140,120}
@media(prefers-color-scheme:dark){:root{--ink:#e4e9ef;--soft:#9aa6b4;--line:#333c47;--back:#12161b;--panel:#1a2027;
--good:32,160,140}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1480px;margin:0 auto;padding:28px 24px 80px}
h1{font-size:26px;margin:0 0 14px}h2{font-size:19px;margin:40px 0 8px}
p{max-width:80ch;color:var(--soft);margin:6px 0 12px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;margin:8px 0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.about{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:12px 16px}
.scroll{overflow:auto;border:1px solid var(--line);border-radius:8px}.tall{max-height:75vh}
table{border-collapse:separate;border-spacing:0;font-size:13px;font-variant-numeric:tabular-nums}
.heat{width:100%;table-layout:fixed}.heat tr>:first-child{width:150px}
.heat th,.heat td{padding:5px 9px;text-align:center;border-bottom:1px solid var(--line)}
.heat thead th{font-weight:500;vertical-align:bottom;color:var(--soft)}
.heat tbody th{text-align:left;font-weight:500;white-space:nowrap;position:sticky;left:0;background:var(--back)}
.heat td{background:rgba(var(--good),calc(var(--p)*.75))}
.none{background:repeating-linear-gradient(45deg,transparent 0 5px,var(--line) 5px 6px)!important}
select,input,button{font:inherit;color:inherit;background:var(--panel);border:1px solid var(--line);border-radius:6px;
padding:3px 8px}
label{color:var(--soft);display:inline-block;margin:4px 12px 8px 0}
.legend{display:flex;flex-wrap:wrap;gap:6px;margin:4px 0 10px}
.legend button{display:inline-flex;align-items:center;gap:6px;font-size:13px;cursor:pointer}
.legend button[aria-pressed=false]{opacity:.35}
.key{width:26px;height:8px}.key line{stroke-width:3}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(380px,1fr));gap:14px}
.plots[hidden],.scroll[hidden]{display:none}
figure{margin:0;background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:8px}
figcaption{font-size:13px;color:var(--soft);text-align:center}
.plot{width:100%;height:auto;display:block}
.plot text{font-size:10.5px;fill:var(--soft)}.plot .name{font-size:11.5px;fill:var(--ink)}
.plot .grid{stroke:var(--line);stroke-width:.7}.plot .frame{fill:none;stroke:var(--soft);stroke-width:.8}
.plot polyline{fill:none;stroke-width:1.8;stroke-linejoin:round;vector-effect:non-scaling-stroke}
.plot polyline:hover{stroke-width:4}.plot .off{display:none}
.rows th{position:sticky;top:0;background:var(--panel);border-bottom:1px solid var(--line);padding:2px;z-index:1}
.rows th button{border:0;padding:2px 4px;font-size:12.5px;background:none;cursor:pointer;font-weight:600;
white-space:nowrap}
.rows td{padding:3px 7px;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
.rows td:nth-child(-n+3){text-align:left}.rows .why{text-align:left;color:var(--soft);white-space:normal;min-width:40ch}
.rows tr:hover td{background:var(--panel)}
details{margin:4px 0 12px}summary{cursor:pointer;color:var(--soft)}
#count{color:var(--soft);font-size:13px}
@media print{.tall{max-height:none}.controls,.filter{display:none}}
"""

SCRIPT = """
const all=(s)=>[...document.querySelectorAll(s)],one=(s)=>document.querySelector(s);
const heat=one('#heat');heat&&(heat.onchange=()=>all('[data-heat]').forEach(d=>d.hidden=d.dataset.heat!==heat.value));
const robot=one('#robot'),task=one('#task');
const pick=()=>all('.plots').forEach(d=>d.hidden=d.dataset.robot!==robot.value||d.dataset.task!==task.value);
robot&&(robot.onchange=task.onchange=pick);
all('[data-key]').forEach(b=>b.onclick=()=>{const on=b.getAttribute('aria-pressed')!=='true';
b.setAttribute('aria-pressed',on);all('polyline[data-s="'+b.dataset.key+'"]').forEach(p=>p.classList.toggle('off',!on))});
const body=one('#rows tbody'),rows=[...body.rows],filter=one('#filter');
const look=()=>{const w=filter.value.toLowerCase().split(/\\s+/).filter(Boolean);let n=0;
rows.forEach(r=>{const t=[0,1,2].map(k=>r.cells[k].textContent).join(' ').toLowerCase();
r.hidden=!w.every(x=>[...t.matchAll(/[a-z0-9]+/g)].some(m=>t.startsWith(x,m.index)));n+=!r.hidden});
one('#count').textContent=n+' of '+rows.length+' rows'};
filter.oninput=look;look();
let sorted=-1,up=1;
all('[data-column]').forEach(b=>b.onclick=()=>{const k=+b.dataset.column;up=k===sorted?-up:1;sorted=k;
const v=r=>{const c=r.cells[k];if(!c||c.colSpan>1)return null;const x=c.dataset.v;
return x===undefined?(c.textContent||null):x==='inf'?Infinity:+x};
rows.map(r=>[v(r),r]).sort(([a],[b])=>a===null?1:b===null?-1:(a<b?-up:a>b?up:0)).forEach(([,r])=>body.append(r))});
"""
