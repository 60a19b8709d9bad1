// Server-side apply, a conflict, a forced apply and an informer, with @kubernetes/client-node.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {once} from 'node:events';
import {createInterface} from 'node:readline';
import {CoreV1Api, KubeConfig, makeInformer, PatchStrategy, setHeaderOptions} from '@kubernetes/client-node';

// The server ends when its stdin ends: when this process ends, however it does.
const server = spawn(process.env.TENURE ?? 'tenure', ['serve', '--memory', '-o', 'json', '--until-eof'],
    {stdio: ['pipe', 'pipe', 'inherit']});
const [line] = await once(createInterface({input: server.stdout}), 'line');
const {url, certificateAuthorityData, token} = JSON.parse(line);
const config = new KubeConfig();
config.loadFromClusterAndUser({name: 'test', server: url, caData: certificateAuthorityData}, {name: 'test', token});

const core = config.makeApiClient(CoreV1Api);
const apply = (fieldManager, color, force) => core.patchNamespacedConfigMap({
    name: 'settings', namespace: 'default', fieldManager, force,
    body: {apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: 'settings'}, data: {color}},
}, setHeaderOptions('Content-Type', PatchStrategy.ServerSideApply));

const colors = [];
const list = () => core.listNamespacedConfigMap({namespace: 'default'});
const informer = makeInformer(config, '/api/v1/namespaces/default/configmaps', list);
const seen = new Promise((resolve, reject) => {
    const note = ({metadata, data}) => metadata.name === 'settings' && colors.push(data.color) === 2 && resolve();
    informer.on('add', note);
    informer.on('update', note);
    informer.on('error', reject);
});
await informer.start();

await apply('alice', 'red');
const refused = await apply('bob', 'blue').then(() => assert.fail('no conflict'), (error) => error);
assert.equal(refused.code, 409);
assert.match(JSON.stringify(refused.body), /conflict with \\*"alice\\*": .data.color/);
const applied = await apply('bob', 'blue', true);
assert.deepEqual(applied.metadata.managedFields.map(({manager}) => manager), ['bob']);
await seen;
assert.deepEqual(colors, ['red', 'blue']);
await informer.stop();
console.log('applied, in conflict, forced, seen by the informer');
process.exit(0);
